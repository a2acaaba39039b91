"""Functions and classes of one's own as studies: on real workers, from a study file, from a notebook's cell."""

import subprocess
import sys
import threading
import tomllib
import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests import own
from tests.events import events_of
from tests.notebooks import execute, written
from workbench import ASHA, PBT, FullRuns, KnowledgeBase, LogUniform, Study
from workbench.cli.main import main
from workbench.core.describe import describe
from workbench.core.errors import FirstTrialsFailed, InvalidInput
from workbench.core.registry import SCHEDULERS
from workbench.study.file import recorded_study
from workbench.study.own import trainable_from, with_own

SPACE = {"lr": LogUniform(1e-3, 1.0)}


@pytest.mark.slow
def test_a_copy_goes_on_from_the_state_its_donor_yielded(client, tmp_path) -> None:
    scheduler = PBT(SPACE, 4, 3, share=0.5)
    study = Study("population", scheduler, own.climb, db=tmp_path / "kb.db", client=client, max_retries=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = study.run().results()
    known = results.lineage
    phases = results.frames.phases.set_index(["trial", "phase"])
    copies = known[known["copied"]]
    assert len(copies)
    for copy in copies.itertuples():
        donor = phases.loc[(copy.parent, copy.parent_phase)]
        mine = phases.loc[(copy.trial, copy.first_phase)]
        assert mine["by"] == donor["by"]
        assert mine["updates"] == donor["updates"] + 1


def test_without_a_state_a_trial_runs_again_from_its_start_unreported_and_it_is_said_once(client, tmp_path) -> None:
    scheduler = ASHA(SPACE, 9, 9, eta=3)
    study = Study("again", scheduler, own.forgetful, db=tmp_path / "kb.db", client=client, max_retries=9)
    with pytest.warns(UserWarning, match=r"trial \d went on from the beginning and ran \d phases? again") as said:
        frames = study.run().frames()
    assert len(said) == 1
    assert "forgetful (own.py" in str(said[0].message)
    rates = frames.trials.set_index("trial")["lr"]
    for row in frames.phases.itertuples():
        assert row.score == pytest.approx((row.phase + 1) * rates[row.trial])
    assert [event.trial for event in events_of(study) if "recovered" in event.data]


def test_what_yields_no_state_hands_no_weights_on_and_a_study_that_wants_them_stops(client, tmp_path) -> None:
    scheduler = PBT(SPACE, 2, 3, exploit="none")  # each goes on as another trial, whoever is ahead
    study = Study("copies", scheduler, own.forgetful, db=tmp_path / "kb.db", client=client, max_retries=9)
    with pytest.raises(FirstTrialsFailed, match=r"NoState: trial \d has .*forgetful \(own.py:\d+\) yielded no") as err:
        study.run()
    assert "yield score, state lets it go on); correct it and resume the study" in str(err.value)


def test_a_wrong_function_is_told_by_name_and_line_before_anything_is_written_or_by_its_first_trials(
    client, tmp_path
) -> None:
    where = {"db": tmp_path / "new" / "kb.db", "client": client}
    with pytest.raises(InvalidInput, match=r"<lambda> \(test_own.py:\d+\) has no yield of its own"):
        Study("wrong", FullRuns(SPACE, 6, 2), lambda config: 0.5, **where)
    assert not (tmp_path / "new").exists()

    lock = threading.Lock()

    def locked(config):
        with lock:
            yield 0.5

    wrong = Study("wrong", FullRuns(SPACE, 6, 2), locked, **where)
    for start in (wrong.start, replace(wrong, client=None, nodes=1).launch):
        with pytest.raises(
            InvalidInput, match=r"locked \(test_own.py:\d+\) cannot be sent to .*lock.*: make .* within"
        ):
            start()
    assert not (tmp_path / "new").exists()

    def words(config):
        yield "0.5"

    with pytest.raises(FirstTrialsFailed, match=r"words \(test_own.py:\d+\) in line \d+ yielded '0.5'"):
        Study("wrong", FullRuns(SPACE, 6, 2), words, **where).run()

    def built(config, seed):
        return 0.5

    with pytest.raises(FirstTrialsFailed, match=r"built \(test_own.py:\d+\) returned 0.5, which is no trial"):
        Study("factory", FullRuns(SPACE, 6, 2), built, **where).run()


# -- from the shell -------------------------------------------------------------------------------------------

FILE = """
[study]
name = "mine"
nodes = 1
[space]
lr = {log_uniform = [1e-3, 1.0]}
[scheduler]
kind = "full"
n_trials = 2
n_phases = 2
[trainable]
kind = "my_module_of_a_test:train"
step = 2.0
"""
WITHIN = """
kind = "replay"
schedule = "best.json"
trainable = {kind = "my_module_of_a_test:train", step = 2.0}
"""
MODULE = """
from functools import partial

def train(config, seed, step=1.0):
    for phase in range(2):
        yield step * config["lr"]

def trained(width, config):
    yield width * config["lr"]

raised, wide = train, partial(trained, 64)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "study.toml").write_text(FILE)
    (tmp_path / "my_module_of_a_test.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("my_module_of_a_test", None)


def test_a_study_file_names_code_of_one_s_own_that_is_replayed_or_an_agent_of_several(folder) -> None:
    (folder / "best.json").write_text('{"phases": [{"config": {"lr": 0.5}}]}')
    replay = trainable_from(tomllib.loads(WITHIN))({}, 0)
    agent = {"kind": "my_module_of_a_test:train", "step": 2.0}
    games = {"kind": "games", "agents": {"one": agent}, "between": {"one": [0, 2]}}
    deeper = trainable_from({"kind": "replay", "schedule": "best.json", "trainable": games})({}, 0)
    for trial, score in ((replay, 1.0), (trainable_from(games)({"lr": 0.5}, 0), 0.5), (deeper, 0.5)):
        assert trial.train_phase(lambda metrics: None)["score"] == score
        trial.close()


def test_a_name_may_stand_for_a_partial_that_binds_by_place_also_with_what_a_record_has_of_it(folder) -> None:
    wide = "my_module_of_a_test:wide"
    recorded = describe(trainable_from({"kind": wide}))
    assert recorded == {"kind": "my_module_of_a_test:trained", "width": 64}
    trial = trainable_from({**recorded, "kind": wide})({"lr": 0.5}, 0)
    assert trial.train_phase(lambda metrics: None)["score"] == 32
    trial.close()
    with pytest.raises(InvalidInput, match="is given width twice, by its place and by its name: bind it once"):
        trainable_from({**recorded, "kind": wide, "width": 3})


@pytest.mark.slow
def test_a_study_file_names_code_of_one_s_own_and_a_database_alone_imports_none(folder, capsys, one_cluster) -> None:
    where = ["--db", "kb.db", "--quiet"]
    one_cluster.run(lambda: sys.path.append(str(folder)))  # its own cluster would be given it
    assert main(["run", "study.toml", *where]) == 0
    with KnowledgeBase("kb.db") as kb:
        assert kb["mine"].spec["trainable"] == {"kind": "my_module_of_a_test:train", "step": 2.0}
        phases = kb["mine"].frames().phases.merge(kb["mine"].frames().trials[["trial", "lr"]], on="trial")
    np.testing.assert_allclose(phases["score"], 2 * phases["lr"])
    del sys.modules["my_module_of_a_test"]
    capsys.readouterr()
    assert main(["run", "--resume", "--name", "mine", *where]) == 2
    err = capsys.readouterr().err
    assert "a knowledge base alone makes none import: name it, --trainable my_module_of_a_test:train, or" in err
    assert "my_module_of_a_test" not in sys.modules
    named = recorded_study("kb.db", "mine", trainable="my_module_of_a_test:train", nodes=1)
    assert named.run(resume=True).progress.state == "ended"
    assert main(["run", "--resume", "--name", "mine", "--trainable", "tests.own:climb", *where]) == 2
    assert "was started with trainable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("no_such_module:train", "there is no module 'no_such_module', neither in .* nor installed"),
        ("my_module_of_a_test:trian", "unknown name in module my_module_of_a_test 'trian': did you mean 'train'"),
        ("my_module_of_a_test.deeper:train", "cannot be imported|there is no module"),
        ("./my_module.py:train", r"module, 'my_module:train', .* and not by its file, got '\./my_module\.py:train'"),
        ("my_module.py:train", "named by its module, 'my_module:train', which is sought in the working directory"),
        (":train", "named by its module, 'my_module:train', got ':train'"),
        ("faulty:train", r"faulty cannot be imported: ValueError: no data \(faulty.py:1 in <module>\)"),
        ("script:train", r"script cannot be imported: SystemExit: 0 \(script.py:2 in <module>\)"),
        ("tests.own:json", "it takes no settings"),
        ("my_module_of_a_test.train", 'unknown trainable .*; code of your own is written "module:name"'),
    ],
)
def test_what_cannot_be_imported_is_one_line(folder, capsys, kind, says) -> None:
    import re

    (folder / "faulty.py").write_text("raise ValueError('no data')")
    (folder / "script.py").write_text("import sys\nsys.exit(0)")
    (folder / "study.toml").write_text(FILE.replace("my_module_of_a_test:train", kind))
    assert main(["run", "study.toml", "--db", "kb.db"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(says, line), line
    assert not (folder / "kb.db").exists()


SCRIPT = """
from workbench import FullRuns, LogUniform, Study

def train(config):
    yield config["lr"]

print("once")
run = Study("mine", FullRuns({"lr": LogUniform(1e-3, 1.0)}, 3, 1), train, db="kb.db", nodes=1).run()
print(run.progress.state)
"""


def test_a_script_needs_no_guard_against_its_own_workers(tmp_path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.stdout.split(), done.returncode) == (["once", "ended"], 0), done.stderr
    assert "cut off" not in done.stderr  # it was waited for


# -- from a notebook's cell -----------------------------------------------------------------------------------

CELLS = [
    """
from pathlib import Path
from workbench import HyperTrick, LogUniform, Study
space = {"lr": LogUniform(1e-3, 1.0)}

def scale(config):
    return 2 * config["lr"]

def train(config, seed, state=None):
    done = (state or {"done": 0})["done"]
    while True:
        done += 1
        yield scale(config) * done, {"done": done}

class Trial:
    def __init__(self, config, seed):
        self.rate, self.done = scale(config), 0
    def train_phase(self, progress):
        self.done += 1
        return {"score": self.rate * self.done}
    def save(self, path):
        (path / "done.txt").write_text(str(self.done))
    def load(self, path):
        self.done = int((path / "done.txt").read_text())
    def close(self):
        pass
""",
    """
for name, trainable in {"function": train, "class": Trial}.items():
    trials = Study(name, HyperTrick(space, 3, 2), trainable, db="kb.db").run().trials
    assert (trials["state"] != "failed").all(), trials
run = Study("launched", HyperTrick(space, 3, 2), train, db="kb.db").launch()
run.wait()
assert len(run.trials) == 3
""",
]


@pytest.mark.slow
def test_functions_and_classes_of_a_cell_travel_to_the_workers(tmp_path) -> None:
    written(tmp_path / "own.ipynb", *CELLS)
    execute(tmp_path / "own.ipynb", tmp_path / "out.ipynb")
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        assert kb.studies["state"].tolist() == ["ended"] * 3
        assert kb["function"].spec["trainable"] == {"kind": "__main__:train"}
    with pytest.raises(InvalidInput, match=r"runs __main__:train, .*: resume it with its file, or from Python"):
        recorded_study(tmp_path / "kb.db", "function")


def test_several_seeds_are_named_as_a_setting_not_as_a_scheduler() -> None:
    with pytest.raises(InvalidInput, match=r"^several seeds are no scheduler.* write seeds = N in \[study\]"):
        with_own({"kind": "seeded"}, SCHEDULERS)
    assert "seeded" not in with_own({"kind": "asha"}, SCHEDULERS)
