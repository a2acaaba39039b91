"""A study's record and its seed make every configuration again, whoever wrote the record, in whatever order."""

import contextlib
import importlib
import json
import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
import warnings
from dataclasses import dataclass, field, replace
from enum import Flag
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.simulated import kept
from tests.support import FROM_HERE, Deterministic, simulate
from workbench import (
    PBT,
    Choice,
    FullRuns,
    HyperTrick,
    KnowledgeBase,
    ListSearcher,
    LogUniform,
    RandomSearcher,
    Space,
    Study,
    Uniform,
)
from workbench.algos.function.factory import as_factory
from workbench.algos.quadratic import Quadratic
from workbench.algos.search import InformedSearcher, Seeded
from workbench.cluster.local import local_client
from workbench.core import record
from workbench.core.describe import Settings, build, describe
from workbench.core.errors import InvalidInput, SchedulerError, StudyError
from workbench.core.ledger import Ledger
from workbench.core.protocols import BEGUN, Event, Kind
from workbench.core.record import (
    PACKAGE,
    best_checkpoint,
    last_settings,
    provenance,
    recorded_place,
    space_of_record,
)
from workbench.core.registry import SCHEDULERS
from workbench.core.resume import refuse_another, take_up, warn_of_new_code
from workbench.study.file import presets, read_preset, recorded_study, study_from


@dataclass(frozen=True)
class Fields:
    """Settings of one's own."""

    size: int = 1
    sizes: tuple[int, ...] = field(default_factory=tuple)


UNSORTED = Space({"t_max": LogUniform(2, 100, 1), "gamma": Choice([0.9, 0.99]), "lr": LogUniform(1e-5, 1e-2)})


def test_the_settings_and_the_place_of_a_study_s_last_driver_hold_when_it_is_taken_up() -> None:
    first = {"nodes": 2, "settings": {"stall_s": 60, "weight": 1, "unknown": 0}, "checkpoints": "/first"}
    then = {"nodes": 5, "settings": {"stall_s": 90}, "checkpoints": "s3://then"}
    events = [Event(Kind.STUDY_STARTED, 0.0, data=first), Event(Kind.STUDY_ENDED, 1.0)]
    assert last_settings(events) == {"nodes": 2, "stall_s": 60, "weight": 1}
    assert recorded_place(events) == "/first"
    events.append(Event(Kind.STUDY_RESUMED, 2.0, data=then))
    assert last_settings(events) == {"nodes": 5, "stall_s": 90}
    assert recorded_place(events) == "s3://then"
    events.append(Event(Kind.STUDY_RESUMED, 3.0))  # which had them beside the knowledge base
    assert recorded_place(events) is None


def test_of_equal_best_scores_the_last_one_s_checkpoint_is_the_one_that_is_kept() -> None:
    def scored(trial: int, phase: int, score: float) -> list[Event]:
        run = Event(Kind.RUN, 0.0, trial, 0, data={"config": {}, "seed": 0, "parent": None})
        data = {"score": score, "metrics": {}, "checkpoint": f"trial-{trial:05d}/phase-{phase:03d}"}
        began = [Event(Kind.PHASE_STARTED, 0.0, trial, phase, 0)]
        return ([run] if phase == 0 else []) + began + [Event(Kind.PHASE_ENDED, 1.0, trial, phase, 0, data)]

    events = [e for one in [(0, 0, 1.0), (1, 0, 5.0), (1, 1, 5.0), (1, 2, 2.0), (2, 0, 5.0)] for e in scored(*one)]
    found = [best_checkpoint(events, Ledger(events), trials) for trials in ([0, 1, 2], [0], [])]
    assert found == ["trial-00001/phase-001", "trial-00000/phase-000", None]


def test_the_commit_that_runs_is_told_and_whether_its_files_differ(tmp_path, monkeypatch) -> None:
    def git(*words: str) -> str:
        as_somebody = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", "-C", tmp_path, *as_somebody, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def told() -> str | None:
        record.commit.cache_clear()
        return record.commit()

    monkeypatch.setattr(record, "CHECKOUT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert told() is None
    git("init", "--quiet")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--message", "one")
    git("tag", "1.0")
    assert told() == git("rev-parse", "--short=12", "HEAD")
    (tmp_path / "file").write_text("two")
    assert told() == git("rev-parse", "--short=12", "HEAD") + "+"
    monkeypatch.setattr(record, "CHECKOUT", None)
    assert told() is None
    record.commit.cache_clear()


def test_a_command_s_word_that_is_no_text_keeps_no_study_from_starting(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/workbench", "run", "caf\udce9.toml", "größe"])
    kept(tmp_path / "kb.db", study_from(read_preset("cartpole"), db=tmp_path / "kb.db"))
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        began = kb["cartpole"].events()[0]
    assert began.data["argv"] == ["workbench", "run", "caf\\udce9.toml", "größe"]


@pytest.mark.parametrize("preset", presets())
def test_every_preset_is_made_again_by_its_name(tmp_path, preset) -> None:
    study = study_from(read_preset(preset), db=tmp_path / "kb.db")
    assert study.name == preset
    kept(tmp_path / "kb.db", study)
    again = recorded_study(tmp_path / "kb.db", study.name, nodes=study.nodes)
    assert again.spec == study.spec
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        spec, events = kb[study.name].spec, kb[study.name].events()
    assert len(take_up(study.name, again.scheduler, study.spec, spec, events)[1]) > 0


domains = st.one_of(
    st.tuples(st.floats(-5, 5), st.floats(0.1, 9)).map(lambda t: Uniform(t[0], t[0] + t[1])),
    st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda t: LogUniform(t[0], t[0] + t[1], 1)),
    st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True).map(Choice),
)
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
spaces = st.dictionaries(names.map(lambda n: f"h{n}"), domains, min_size=1, max_size=5)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(space=spaces.flatmap(lambda s: st.permutations(list(s.items()))), seed=st.integers(0, 2**32))
def test_a_space_in_any_order_gives_its_configurations_again(tmp_path_factory, space, seed) -> None:
    db = tmp_path_factory.mktemp("kb") / "kb.db"
    study = Study("any", FullRuns(RandomSearcher(Space(dict(space)), seed), 6, 1), Deterministic, db, seed=seed)
    runs = [e.data["config"] for e in kept(db, study) if e.kind is Kind.RUN]
    with KnowledgeBase(db) as kb:
        spec, logged = kb["any"].spec, kb["any"].events()
    assert [e.data["config"] for e in logged if e.kind is Kind.RUN] == runs
    again = build("scheduler", spec["scheduler"], SCHEDULERS)
    assert [again.searcher.suggest(i) for i in range(len(runs))] == runs


@pytest.mark.parametrize(
    "scheduler",
    [
        FullRuns(RandomSearcher(UNSORTED), 2, 1),
        Seeded(FullRuns(RandomSearcher(UNSORTED), 2, 1), seeds=2),
        PBT(UNSORTED, 4, 2),
        FullRuns(InformedSearcher(UNSORTED, [{"t_max": 3, "gamma": 0.9, "lr": 1e-3}]), 2, 1),
        FullRuns(RandomSearcher(Space(UNSORTED, constraint=lambda config: True)), 2, 1),
    ],
)
def test_a_record_tells_the_space_whatever_draws_from_it(scheduler) -> None:
    spec = {"scheduler": json.loads(json.dumps(describe(scheduler)))}
    assert space_of_record(spec) == dict(UNSORTED)


@pytest.mark.parametrize(
    "scheduler", [describe(FullRuns(ListSearcher([{"lr": 0.1}]), 1, 1)), {"kind": "mine"}, {"space": 3}, None]
)
def test_a_record_without_a_space_that_can_be_read_has_none(scheduler) -> None:
    assert space_of_record({"scheduler": scheduler}) is None


# -- a study of one's own -------------------------------------------------------------------------------------


@pytest.fixture
def study(client, tmp_path):
    return Study("mine", FullRuns(RandomSearcher(UNSORTED), 4, 2), Deterministic, tmp_path / "kb.db", client=client)


def test_another_order_of_the_space_is_another_study_and_the_same_one_goes_on(study) -> None:
    before = study.run().trials
    other = Space({name: UNSORTED[name] for name in sorted(UNSORTED)})
    with pytest.raises(StudyError, match=r"in the order t_max, gamma, lr; a space in the order gamma, lr, t_max"):
        replace(study, scheduler=FullRuns(RandomSearcher(other), 4, 2)).start(resume=True)
    assert (
        study.run(resume=True).trials[["lr", "gamma", "t_max", "seed"]].equals(before[["lr", "gamma", "t_max", "seed"]])
    )


def test_a_setting_of_a_trainable_that_is_new_since_stood_at_its_default() -> None:
    scheduler = FullRuns(RandomSearcher(UNSORTED), 2, 1)

    def spec(trainable) -> dict:
        return {"scheduler": describe(scheduler), "trainable": describe(trainable), "seed": 0}

    recorded = spec(Quadratic())
    del recorded["trainable"]["learning_rate"]
    assert len(take_up("old", scheduler, spec(Quadratic()), recorded, [])[1]) == 0
    with pytest.raises(StudyError, match=r"was started with trainable\.learning_rate = 0\.02, not 0\.5: resume it"):
        take_up("old", scheduler, spec(Quadratic(learning_rate=0.5)), recorded, [])


def test_a_setting_that_is_nan_is_the_same_when_a_study_is_resumed() -> None:
    configs = [{"lr": 0.1, "momentum": math.nan}]
    spec = {"scheduler": {"kind": "full", "searcher": {"kind": "list", "configs": configs}}}
    refuse_another("one", spec, json.loads(json.dumps(spec)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "hyperband"}, 'with scheduler.kind = "hypertrick", not "hyperband":'),
        ({"n_phases": 5, "n_trials": 9}, "with scheduler.n_phases = 4, not 5:"),
        (
            {"searcher": {"kind": "list", "configs": [{"lr": 1}, {"lr": 2}]}},
            r"with scheduler.searcher.configs\[1\].lr = 3, not 2:",
        ),
        ({"searcher": {"kind": "list", "configs": [{"lr": True}, {"lr": 3}]}}, r"configs\[0\].lr = 1, not true:"),
        ({"searcher": {"kind": "list", "configs": []}}, r'configs = \[{"lr":1},{"lr":3}\], not \[\]:'),
        ({"searcher": {"kind": "mine:Searcher", "since": 2}}, 'searcher.kind = "list", not "mine:Searcher"'),
    ],
)
def test_the_setting_that_differs_is_told_by_its_place_and_no_other(change, says) -> None:
    begun = describe(HyperTrick(ListSearcher([{"lr": 1}, {"lr": 3}]), 2, 4))
    refuse_another("one", {"scheduler": begun | {"n_trials": 9}}, {"scheduler": begun})
    with pytest.raises(StudyError, match=says):
        refuse_another("one", {"scheduler": begun | change}, {"scheduler": begun})


def test_of_code_of_one_s_own_what_is_recorded_is_compared_and_what_was_given_since() -> None:
    recorded = {"trainable": {"kind": "mine:train", "rate": 1}, "seed": 0}
    since = Settings({"kind": "mine:train", "rate": 1, "since": 2}, ["since"])
    refuse_another("one", {"trainable": since, "seed": 0}, recorded)
    for changed, says in [
        ({"kind": "mine:train", "rate": 2}, r"trainable\.rate = 1, not 2"),
        ({"kind": "mine:train", "rate": True}, r"trainable\.rate = 1, not true"),
        ({**since}, r"trainable\.since = null, not 2"),
    ]:
        with pytest.raises(StudyError, match=f"was started with {says}"):
            refuse_another("one", {"trainable": changed, "seed": 0}, recorded)
    with pytest.raises(StudyError, match="was started with seed = 0, not 1"):
        refuse_another("one", {**recorded, "seed": 1}, recorded)


def test_what_is_bound_since_is_refused_unless_it_stands_at_the_code_s_own_default() -> None:
    def train(config, seed, rate=1.0, **others):
        yield rate

    def refused(given: Any, recorded: dict[str, Any]) -> bool:
        try:
            refuse_another("one", {"trainable": describe(given)}, {"trainable": recorded})
        except StudyError:
            return True
        return False

    begun = describe(train)
    assert refused(partial(train, seed=3), begun)
    before = {"kind": begun["kind"]}  # as records were before they had defaults
    assert [refused(partial(train, rate=rate), before) for rate in (1.0, 2.0)] == [False, True]
    before = {"kind": describe(Fields())["kind"], "size": 1}  # of a field that there is since
    assert [refused(Fields(sizes=sizes), before) for sizes in ((), (3,))] == [False, True]


def test_what_a_partial_binds_by_its_place_is_a_setting_as_what_it_binds_by_its_name() -> None:
    def train(width, config, seed=0, rate=1.0):
        yield width * rate

    spec = {"trainable": describe(as_factory(partial(train, 64)))}
    assert spec["trainable"] == {"kind": describe(train)["kind"], "width": 64, "rate": 1.0}
    refuse_another("one", {"trainable": describe(as_factory(partial(train, 64, rate=1.0)))}, spec)
    with pytest.raises(StudyError, match=r"was started with trainable\.width = 64, not 128: resume it as it was"):
        refuse_another("one", {"trainable": describe(as_factory(partial(train, 128)))}, spec)
    del spec["trainable"]["width"]  # as records were before
    refuse_another("one", {"trainable": describe(as_factory(partial(train, 128)))}, spec)


class Layers(Flag):
    FIRST, SECOND = 1, 2


@pytest.mark.parametrize(
    ("then", "now"), [(Layers.FIRST, Layers.FIRST | Layers.SECOND), (np.ones(2), np.ones(3)), (np.ones(2), np.zeros(2))]
)
def test_another_member_of_an_enumeration_or_another_array_is_refused(then, now) -> None:
    def train(config, loss=None):
        yield loss

    spec = {"trainable": json.loads(json.dumps(describe(partial(train, loss=then))))}
    refuse_another("one", {"trainable": describe(partial(train, loss=then))}, spec)
    with pytest.raises(StudyError, match=r"was started with trainable\.loss\S* = .*, not .*: resume it as it was"):
        refuse_another("one", {"trainable": describe(partial(train, loss=now))}, spec)
    spec["trainable"]["loss"] = {"kind": spec["trainable"]["loss"]["kind"]}  # as records were before
    refuse_another("one", {"trainable": describe(partial(train, loss=now))}, spec)


def test_a_default_of_one_s_own_function_that_has_changed_is_told_as_any_other_setting() -> None:
    def made(step: float):
        def train(config, seed=0, state=None, *, step=step, sizes=(3, 4)):
            yield step

        return train

    spec = {"trainable": describe(as_factory(made(0.1)))}
    assert spec["trainable"].keys() == {"kind", "step"}
    refuse_another("one", {"trainable": describe(as_factory(partial(made(0.2), step=0.1)))}, spec)
    with pytest.raises(StudyError, match=r"was started with trainable\.step = 0\.1, not 0\.2: resume it as it was"):
        refuse_another("one", {"trainable": describe(as_factory(made(0.2)))}, spec)
    del spec["trainable"]["step"]  # as records were before
    refuse_another("one", {"trainable": describe(as_factory(made(0.2)))}, spec)


RECORDED = {"scheduler": {"kind": "hypertrick", "n": 3, "searcher": {"kind": "random", "space": {"lr": [0, 1]}}}}


def usual(settings: dict[str, Any], **since: Any) -> Settings:
    return Settings({**settings, **since}, since)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda s: s["scheduler"].update(new_setting=0.5), True),
        (lambda s: s.update(scheduler=usual(s["scheduler"], new_setting=0.5)), False),
        (lambda s: s["scheduler"]["searcher"].update(new_setting=None), False),
        (lambda s: s.update(new_table={"kind": "x"}), False),
        (lambda s: s["scheduler"].update(n=4), True),
        (lambda s: s["scheduler"].pop("n"), True),
        (lambda s: s["scheduler"]["searcher"].update(kind="grid"), True),
        (lambda s: s["scheduler"]["searcher"]["space"].update(gamma=[0, 1]), True),
        (lambda s: s["scheduler"]["searcher"]["space"]["lr"].append(2), True),
        (lambda s: s.clear(), True),
    ],
)
def test_a_setting_unknown_when_a_study_was_recorded_does_not_keep_it_from_being_resumed(change, refused) -> None:
    given = json.loads(json.dumps(RECORDED))
    change(given)
    if refused:
        with pytest.raises(StudyError, match=r"was started with scheduler.* = .*: resume it as it was"):
            refuse_another("one", given, RECORDED)
    else:
        refuse_another("one", given, RECORDED)


def test_a_class_of_ones_own_is_resumed_from_python_and_the_refusal_says_how(study) -> None:
    study.run()
    with pytest.raises(
        InvalidInput, match=r"Deterministic, code.*: name it, .*, or from Python, Study.*run\(resume=True\)"
    ):
        recorded_study(study.db, "mine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert study.run(resume=True).frames().state == "ended"


def test_code_that_has_changed_since_warns_in_one_line(study, monkeypatch) -> None:
    study.run()
    monkeypatch.setattr("workbench.core.record.source_mark", lambda thing: "another")
    with pytest.warns(UserWarning, match="the code of its scheduler and trainable has changed since") as told:
        assert study.run(resume=True).frames().state == "ended"
    assert "\n" not in str(told[0].message)
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="has changed"):  # back again: that, too, is a change
        study.run(resume=True)


def test_a_rule_that_was_corrected_since_is_named_as_the_cause(tmp_path, monkeypatch) -> None:
    study = study_from(read_preset("cartpole"), db=tmp_path / "kb.db")
    kept(tmp_path / "kb.db", study)
    judge = HyperTrick._judge

    def corrected(self, report):
        decision = judge(self, report)
        return replace(decision, verdict="stop")

    monkeypatch.setattr(HyperTrick, "_judge", corrected)
    monkeypatch.setattr("workbench.core.resume.source_mark", lambda thing: "another")
    with pytest.raises(SchedulerError) as told:
        study.start(resume=True)
    said, ours = str(told.value), f"rl-workbench {version('rl-workbench')}"
    assert f"'cartpole' was recorded by another version of HyperTrick ({ours}, code" in said
    assert "whose rule was corrected since: start another study, or resume it with the rl-workbench that" in said
    with contextlib.closing(sqlite3.connect(tmp_path / "kb.db")) as connection, connection:
        connection.execute("UPDATE events SET data = json_remove(data, '$.code')")
    with pytest.raises(SchedulerError, match=rf"another version of HyperTrick \({ours}\), whose rule was"):
        study.start(resume=True)


@pytest.mark.parametrize(
    ("changes", "why", "cure"),
    [
        ({}, "though its code is that which recorded it: the log was altered", "restore it from a backup"),
        (
            {"versions": {PACKAGE: "0.1"}},
            rf"another version of FullRuns \({PACKAGE} 0.1, code \w+; here [\w.]+, code \w+\)",
            f"resume it with the {PACKAGE} that recorded it",
        ),
        (
            {"versions": {**record.versions(), "scipy": "0.1", "optuna": "9", "smac": None, "torch": "0.1"}},
            rf"recorded with scipy 0.1 \(here {version('scipy')}\), optuna 9 \(here .*\): another version may",
            "resume it with the version that recorded it",
        ),
        ({"versions": {}}, f"another version of FullRuns .{PACKAGE} of an unknown version, code", "resume it with the"),
    ],
)
def test_why_a_log_does_not_fit_is_told_as_far_as_it_is_known(changes, why, cure) -> None:
    scheduler = FullRuns(RandomSearcher(UNSORTED), 2, 1)
    spec = {"scheduler": describe(scheduler), "trainable": {"kind": "mine:Trial"}, "seed": 0}
    begun = Event(Kind.STUDY_STARTED, 0.0, data=provenance(2, scheduler=scheduler) | changes)
    another = simulate(FullRuns(RandomSearcher(UNSORTED, seed=1), 2, 1))
    with pytest.raises(SchedulerError, match=f"^study 'any' .*{why}.*: start another study, or {cure}"):
        take_up("any", scheduler, spec, spec, [begun, *another])


@pytest.mark.parametrize(
    ("code", "version", "said"),
    [
        (
            {"scheduler": "b", "trainable": "c"},
            "1",
            "the code of its scheduler has changed since it was last driven;",
        ),
        ({"scheduler": "a", "trainable": "c"}, "2", f"workbench has changed .* driven \\({PACKAGE} 1 then, 2 now\\)"),
        ({"scheduler": "a", "trainable": "c"}, "1", None),  # of the trainable nothing was known
        ({"scheduler": None, "trainable": None}, "1", None),
    ],
)
def test_what_has_changed_since_a_study_was_last_driven_is_told(code, version, said) -> None:
    driven = [{"code": {"scheduler": "z"}, "versions": {PACKAGE: "0"}}]
    driven.append({"code": {"scheduler": "a", "trainable": None}, "versions": {PACKAGE: "1"}})
    past = [Event(kind, 0.0, data=data) for kind, data in zip(BEGUN, driven, strict=True)]
    now = {"code": code, "versions": {PACKAGE: version}}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_new_code("mine", past, now)
    assert len(told) == (said is not None)
    assert all(re.search(said, str(warning.message)) for warning in told)


def test_versions_are_those_that_a_process_found_first_and_of_what_is_installed_meanwhile(
    tmp_path, monkeypatch
) -> None:
    """What has been imported stays as it is, whatever is installed over it."""
    monkeypatch.syspath_prepend(tmp_path)
    assert record.version_of("met-nowhere-else") is None
    (installed := tmp_path / "met_nowhere_else-1.0.dist-info").mkdir()
    importlib.invalidate_caches()
    for number in ("1.0", "2.0"):
        (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: met-nowhere-else\nVersion: {number}\n")
        assert record.version_of("met-nowhere-else") == "1.0"


# -- in processes of their own --------------------------------------------------------------------------------

_PART_OF = """
import sys
from tests.core.test_record import part_of_every_preset
if __name__ == "__main__":
    part_of_every_preset(sys.argv[1], sys.argv[2] == "resume")
"""


def small(preset: str) -> dict:
    """A preset whose phases are over in no time, its games too; all that draws configurations is as it was."""
    table = read_preset(preset)
    trainable = table["trainable"]
    unit = "frames" if trainable["kind"] == "ga3c" else "updates"
    trainable["phase"] = {unit: 40 if unit == "frames" else 1}
    if trainable["kind"] in ("ga3c", "ba3c", "hts"):
        trainable |= {"min_games": 1, "max_episode_frames": 40, "noop_max": 0}
    for name in ("start_from", "evaluate_every", "evaluate_games"):
        trainable.pop(name, None)
    for name, most in (("n_ranks", 2), ("n_servers", 2), ("n_awaited", 1), ("n_agents", 2)):
        if name in trainable:
            trainable[name] = most
    if trainable["kind"] == "ga3c":
        trainable |= {"n_agents": 2, "n_groups": 1, "min_training_batch": 1}
    return table


def part_of_every_preset(db: str, resume: bool) -> None:
    """Begin every preset, or go on with it by its name, until another phase has ended."""
    with local_client(2) as client:
        for preset in presets():
            study = (
                recorded_study(db, preset, client=client)
                if resume
                else study_from(small(preset), name=preset, db=db, client=client)
            )
            run = study.start(resume=resume)
            n = run.progress.phases_ended
            while run.progress.phases_ended == n and run.running:
                run.wait(0.02)
            run.stop()
            run.wait()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_preset_is_interrupted_and_resumed_by_its_name_in_another_process(tmp_path) -> None:
    (tmp_path / "part.py").write_text(_PART_OF)
    where = {**os.environ, **FROM_HERE}
    for step in ("start", "resume"):
        command = [sys.executable, str(tmp_path / "part.py"), str(tmp_path / "kb.db"), step]
        subprocess.run(command, env=where, check=True, timeout=900)
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        for preset in presets():
            kinds = [e.kind for e in kb[preset].events()]
            assert Kind.STUDY_RESUMED in kinds, preset
            assert Kind.PHASE_ENDED in kinds[kinds.index(Kind.STUDY_RESUMED) :], preset
            assert Kind.TRIAL_FAILED not in kinds, preset


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_preset_is_interrupted_and_resumed_by_its_name_from_the_command_line(tmp_path) -> None:
    """As a user does: the preset's own space, scheduler and name; its trials smaller."""
    table = small("cartpole")
    table["trainable"]["phase"] = {"frames": 10_000}  # longer than the line of progress takes to tell of it
    space = "\n".join(f"{name} = {_toml(entry)}" for name, entry in table["space"].items())
    rest = (
        f'[scheduler]\nkind = "hypertrick"\nn_trials = 4\nn_phases = 2\n[trainable]\n{_toml_lines(table["trainable"])}'
    )
    (tmp_path / "study.toml").write_text(f'[study]\nname = "cartpole"\nnodes = 2\n[space]\n{space}\n{rest}')
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **FROM_HERE}
    workbench = [sys.executable, "-m", "workbench", "run", "--db", "kb.db"]
    running = subprocess.Popen(
        [*workbench, "study.toml"],
        cwd=tmp_path,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert running.stderr is not None
    next(line for line in running.stderr if " started" in line)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=600)
    done = subprocess.run(
        [*workbench, "--resume", "--name", "cartpole", "--quiet"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "replay differs" not in done.stderr
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert kb["cartpole"].frames().state == "ended"


def _toml(entry: dict) -> str:
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in entry.items()) + "}"


def _toml_lines(table: dict) -> str:
    return "\n".join(f"{k} = {_toml(v) if isinstance(v, dict) else json.dumps(v)}" for k, v in table.items())
