import json
import math

from workbench.viz.dashboard.wire import Wire, packed


def test_what_is_told_is_numbered_and_silence_beats():
    said = []
    wire = Wire(lambda content, buffers: said.append((content, buffers)))
    wire.snapshot(({"a": 1}, [b"spans"]))
    wire.delta(({"a": 2}, [b"spans"]))
    wire.delta(None)
    assert [(content["type"], content["number"]) for content, _ in said] == [("snapshot", 1), ("delta", 2), ("beat", 2)]
    assert said[0][1] == [b"spans", b'{"a": 1}']


def test_numbers_that_json_cannot_hold_become_words():
    content = {"trials": [{"config": {"lr": math.inf, "net": [math.nan, 1.5]}}]}
    assert json.loads(packed(content)) == {"trials": [{"config": {"lr": "inf", "net": ["nan", 1.5]}}]}


def test_a_channel_that_closes_is_outlived():
    def closed(_, __):
        raise RuntimeError("closed")

    Wire(closed).say({"type": "front"})
