"""What trials fail of is told wherever a study is looked at; a study that cannot work stops by itself."""

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support import SPACE, Deterministic
from workbench import AttachedStudy, FullRuns, KnowledgeBase, RandomSearcher, Study, Uniform
from workbench.core.errors import FirstTrialsFailed, InvalidInput, StudyError
from workbench.core.failures import Hopeless, error_key, error_text, place_of
from workbench.core.protocols import Event, Kind
from workbench.viz.dashboard import Dashboard


@dataclass(frozen=True)
class Faulty:
    """Cannot be built, until a file appears."""

    path: str

    def __call__(self, config, seed):
        if not Path(self.path).exists():
            raise ValueError(f"no rate of {config['lr']}, name='adam'")
        return Deterministic(config, seed)


LINE = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "raise ValueError(f" in line)
CAUSE = f"(test_failures.py:{LINE} in __call__)"
SAID = r"the first [3-7] trials failed alike"  # three are enough; more may have failed in the same moment


@pytest.fixture
def study_of(client, tmp_path):
    def make(**changes) -> Study:
        settings = {"client": client, "max_retries": 0, "db": tmp_path / "kb.db", **changes}
        scheduler = FullRuns(RandomSearcher(SPACE), 8, 2)
        return Study("faulty", scheduler, Faulty(str(tmp_path / "corrected")), **settings)

    return make


def test_a_study_whose_first_trials_fail_alike_stops_says_so_and_goes_on_once_corrected(study_of, tmp_path) -> None:
    run = study_of(max_retries=1).start()
    with pytest.raises(FirstTrialsFailed, match=rf"{SAID}: ValueError: no rate of") as told:
        run.wait(60)
    assert CAUSE in str(told.value)
    frames = run.frames()
    assert frames.state == "interrupted"
    failed = int((frames.trials["state"] == "failed").sum())
    assert 3 <= failed < 8
    assert f"and resume the study, where the {failed} that failed are not tried again, or let it" in str(told.value)
    with pytest.raises(StudyError, match=SAID):
        AttachedStudy(tmp_path / "kb.db", "faulty").wait()
    (tmp_path / "corrected").touch()
    again = study_of(max_retries=1).run(resume=True).frames()
    assert again.state == "ended"
    assert again.trials["state"].value_counts().to_dict() == {"finished": 8 - failed, "failed": failed}


def test_a_study_without_a_trial_left_is_not_to_be_resumed(study_of) -> None:
    study = study_of()
    with pytest.raises(FirstTrialsFailed, match=r"correct it and begin another study, for this one has no trial left$"):
        replace(study, scheduler=FullRuns(RandomSearcher(SPACE), 3, 2)).run()


def test_a_study_that_goes_on_regardless_tells_its_errors_wherever_it_is_looked_at(study_of, tmp_path) -> None:
    run = study_of(fail_fast=False).start()
    said = io.StringIO()
    run.follow(every_s=0.2, out=said)
    assert said.getvalue().splitlines()[-1].startswith("failed: ValueError: no rate of")
    assert said.getvalue().endswith(f"{CAUSE}, 8 trials\n")
    assert f"{CAUSE}, 8 trials" in str(run.results())
    assert run.trials["error"].str.endswith(CAUSE).all()
    assert f"{CAUSE}, 8 trials" in run.report(tmp_path / "r.html").read_text()
    board = Dashboard(tmp_path / "kb.db", "faulty")
    try:
        content, _ = board._board.snapshot()
        assert f"{CAUSE}, 8 trials" in board._repr_html_()
    finally:
        board.close()
    assert [line.endswith(f"{CAUSE}, 8 trials") for line in content["failures"]] == [True]


def test_fail_fast_is_true_or_false(study_of) -> None:
    with pytest.raises(InvalidInput, match="fail_fast is true or false, got 'no'"):
        study_of(fail_fast="no")


# -- what is alike --------------------------------------------------------------------------------------------


def failed(
    trial: int, error: str, place: str = "train.py:12 in build", phase: int = 0, why: str = "exception"
) -> Event:
    return Event(Kind.TRIAL_FAILED, 1.0, trial, phase, data={"why": why, "error": error, "place": place})


def joined(n: int) -> list[Event]:
    return [Event(Kind.SLOT_JOINED, 0.0, slot=k, data={"node": "m"}) for k in range(n)]


ALIKE = [failed(k, f"ValueError: bad {k}") for k in range(5)]


@pytest.mark.parametrize(
    ("events", "hopeless"),
    [
        ([*joined(1), *ALIKE[:2]], False),
        ([*joined(1), *ALIKE[:3]], True),
        ([*joined(5), *ALIKE[:4]], False),
        ([*joined(5), *ALIKE], True),
        ([*joined(1), *ALIKE[:2], failed(2, "ValueError: bad 2", "train.py:13 in build")], False),
        ([*joined(1), *ALIKE[:2], failed(2, "KeyError: 2")], False),
        ([*joined(1), *ALIKE[:2], failed(2, "KeyError: 2"), *ALIKE], False),
        ([*joined(1), *ALIKE[:2], Event(Kind.PHASE_ENDED, 1.0, 2, 0, data={"score": 1.0}), *ALIKE], False),
        ([*joined(1), *(failed(k, "ValueError: bad", phase=1) for k in range(3))], False),
        ([*joined(1), *(failed(k, "the worker died", "", why="crash") for k in range(3))], False),
        ([*joined(1), *(failed(k, "FloatingPointError: the score is nan", "") for k in range(3))], False),
        ([*joined(1), *(failed(k, f"OSError: no file {k}", "") for k in range(3))], True),
        (
            [*joined(1), *(Event(Kind.PHASE_FAILED, 1.0, 0, 0, data=ALIKE[0].data) for _ in range(3)), ALIKE[0]],
            False,
        ),
    ],
)
def test_when_a_study_is_hopeless(events, hopeless) -> None:
    watch = Hopeless()
    for event in events:
        watch.see(event)
    assert bool(watch.cause) is hopeless


def ended(trial: int, phase: int, last: int = 8) -> list[Event]:
    """A trial whose phase ends, or whose function does."""
    if phase < last:
        return [Event(Kind.PHASE_ENDED, 1.0, trial, phase, data={"score": 1.0})]
    return [failed(trial, f"EndedTooSoon: f (f.py:2) ended after {phase} yields", "", phase)]


@pytest.mark.parametrize(
    ("events", "n_phases"),
    [
        ([*ended(0, 0), *ended(1, 0), *ended(0, 1), *ended(0, 2, 2)], 2),
        ([*ended(0, 0), *ended(0, 1), *ended(1, 0), *ended(1, 1, 1)], None),  # another has come further
        ([*ended(0, 0, 0)], None),  # which may be the configuration's fault
    ],
)
def test_one_function_that_ended_is_enough_where_no_trial_came_further(events, n_phases) -> None:
    watch = Hopeless()
    for event in events:
        watch.see(event)
    assert bool(watch.cause) is (n_phases is not None)
    assert (f"as in tune(…, n_phases={n_phases})" in watch.cure) is (n_phases is not None)


@pytest.mark.parametrize(("place", "hopeless"), [("", True), ("train.py:12 in build", False)])
def test_one_copy_of_what_saves_nothing_is_enough_at_any_time(place, hopeless) -> None:
    watch = Hopeless()
    for event in (*ended(0, 0), *ended(1, 0), failed(2, "NoState: trial 2 has its weights from …", place, 1)):
        watch.see(event)
    assert bool(watch.cause) is hopeless


def test_errors_are_alike_by_type_and_place_or_else_by_their_words() -> None:
    placed = "ValueError: x (of 3) (train.py:12 in build)"
    assert error_key(placed) == error_key("rank 1 of 2: ValueError: y (train.py:12 in build)")
    assert error_key(placed) != error_key("ValueError: x (of 3) (train.py:13 in build)")
    assert error_key("OSError: 3 of 5") == error_key("OSError: 4 of 9.5") != error_key("OSError: other")
    assert error_text({"error": "E", "traceback": "…"}) == "E"  # a log of before


def test_the_place_is_the_last_line_of_the_users_own_code() -> None:
    def reads() -> None:
        json.loads("{")

    with pytest.raises(json.JSONDecodeError) as told:
        reads()
    assert place_of(told.value).startswith("test_failures.py:")
    assert place_of(told.value).endswith("in reads")
    assert place_of(ValueError("never raised")) == ""


def test_the_place_is_no_line_that_a_dataclass_of_this_package_generates() -> None:
    def builds() -> None:
        Uniform(1, 0)

    with pytest.raises(InvalidInput) as told:
        builds()
    assert place_of(told.value).startswith("test_failures.py:")
    assert place_of(told.value).endswith("in builds")


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_the_place_of_what_an_installed_package_raises_is_the_line_that_called_it(folder) -> None:
    scope: dict[str, object] = {}
    exec(compile("def fails():\n    raise ValueError", f"/there/{folder}/package/part.py", "exec"), scope)
    with pytest.raises(ValueError) as told:  # noqa: PT011
        scope["fails"]()
    assert place_of(told.value).startswith("test_failures.py:")


@pytest.mark.parametrize(
    ("options", "more", "stops"),
    [([], "", True), (["--no-fail-fast"], "", False), ([], "fail_fast = false", False)],
)
def test_the_command_exits_with_1_and_says_why_when_no_trial_has_a_score(
    study_of, tmp_path, capfd, monkeypatch, options, more, stops
) -> None:
    from workbench.cli.main import main
    from workbench.study import file as study_file

    built = study_file.study_from

    def faulty(table, **overrides):
        return replace(
            built(table, **overrides),
            trainable=Faulty(str(tmp_path / "corrected")),
            scheduler=FullRuns(RandomSearcher(SPACE), 12, 1),
            client=study_of().client,
        )

    monkeypatch.setattr(study_file, "study_from", faulty)
    preset = study_file.read_preset("cartpole")
    preset["study"] |= {"max_retries": 0} | ({"fail_fast": False} if more else {})
    monkeypatch.setattr(study_file, "read_preset", lambda name: preset)
    assert main(["run", "--preset", "cartpole", "--db", str(tmp_path / "kb.db"), *options]) == 1
    out, err = capfd.readouterr()
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        frames = kb["cartpole"].frames()
    assert frames.state == ("interrupted" if stops else "ended")
    assert (len(frames.trials) < 12) is stops
    assert CAUSE in out
    assert ("are not tried again, or let it go on with --no-fail-fast" in err) is stops
    assert ", name='adam' (" in err.splitlines()[-1]
