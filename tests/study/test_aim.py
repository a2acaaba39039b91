"""Studies that minimise, and studies that end before their scheduler is done; how they are resumed and shown."""

from dataclasses import replace

import pytest

from tests.events import events_of, write_log
from tests.support import SPACE, Deterministic
from workbench import FullRuns, KnowledgeBase, ListSearcher, RandomSearcher, Space, Study, Uniform
from workbench.algos.quadratic import Quadratic
from workbench.core.errors import StudyError
from workbench.core.protocols import Kind
from workbench.study.file import recorded_study, study_from
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import News


@pytest.fixture
def study_of(client, tmp_path):
    def make(**changes) -> Study:
        scheduler = FullRuns(RandomSearcher(SPACE), 4, 2)
        given = {"name": "aimed", "db": tmp_path / "kb.db", "client": client, **changes}
        return Study(**{"scheduler": scheduler, "trainable": Deterministic, **given})

    return make


def test_a_study_that_minimises_shows_its_lowest_score_as_the_best_everywhere(study_of, tmp_path, drawn_once) -> None:
    study = study_of(mode="min")
    results = study.run().results()
    lowest = results.frames.phases["score"].min()
    assert results.summary["best_score"] == lowest < 0
    assert "score minimised" in str(results)
    assert results.figures()["best so far"].data[0].y[-1] == lowest
    with KnowledgeBase(study.db) as kb:
        assert kb.studies["best_score"].tolist() == [lowest]
        board, points = Board("aimed", results.size), kb["aimed"].points(["score"])[0]
        board.take(News(kb["aimed"].events(), points))
    assert board.state()["best"][-1][1] == lowest
    assert "score minimised" in study.run(resume=True).report(tmp_path / "r.html").read_text()
    with pytest.raises(StudyError, match='was started with mode = "min", not "max"'):
        replace(study, mode="max").run(resume=True)


def test_a_target_ends_a_study_which_says_so_and_goes_on_without_it(study_of) -> None:
    study = study_of(target_score=-100.0)
    run = study.run()
    assert run.results().frames.state == "ended"
    assert "ended: the target score, -100, is reached" in str(run.results())
    assert "ended: the target score" in str(run.progress)
    n = len(run.frames().phases["score"].dropna())
    assert 1 <= n < 8
    again = study.run(resume=True)  # it is still reached
    assert len(again.frames().phases["score"].dropna()) == n
    on = replace(study, target_score=None).run(resume=True)
    assert len(on.frames().phases["score"].dropna()) == 8
    assert "target" not in str(on.results())


def test_the_configuration_that_reached_the_target_is_the_one_to_take(client, tmp_path) -> None:
    """Others have run further by then, and to worse scores."""

    def train(config):
        yield config["loss"]
        yield config["loss"]

    scheduler = FullRuns(ListSearcher([{"loss": 0.5}, {"loss": 0.4}, {"loss": 0.1}, {"loss": 0.3}]), 4, 2)
    study = Study("aimed", scheduler, train, tmp_path / "kb.db", client=client, mode="min", target_score=0.2)
    found = study.run().results()
    assert "the target score, 0.2, is reached: 0.1" in found.frames.why_over
    assert found.frames.trials["phases"].max() == 2
    assert (found.best_config, found.best_score) == ({"loss": 0.1}, 0.1)
    assert found.best_checkpoint.endswith("trial-00002/phase-000")


def test_a_study_ends_when_its_time_is_up_and_a_resumption_by_name_keeps_its_aim(client, tmp_path) -> None:
    table = {
        "study": {"name": "short", "mode": "min", "max_hours": 1e-9, "second": "q", "second_mode": "min"},
        "space": Space({"h0": Uniform(0, 1), "h1": Uniform(0, 1)}).to_json(),
        "scheduler": {"kind": "full", "n_trials": 3, "n_phases": 2},
        "trainable": {"kind": "quadratic"},
    }
    study = study_from(table, client=client, db=tmp_path / "kb.db")
    assert isinstance(study.trainable, Quadratic)
    run = study.run()
    assert "its time, 1e-09 h, is up" in str(run.results())
    again = recorded_study(study.db, "short", client=client)
    assert again.aim == study.aim
    more = recorded_study(study.db, "short", client=client, max_hours=1.0)
    assert (more.mode, more.max_hours, more.second) == ("min", 1.0, "q")
    assert len(more.run(resume=True).frames().phases["score"].dropna()) == 6
    resumed = [e.data["aim"] for e in events_of(study) if e.kind is Kind.STUDY_RESUMED]
    assert resumed == [{"mode": "min", "max_hours": 1.0, "second": "q", "second_mode": "min"}]


def test_time_spent_confirming_does_not_use_up_the_hours_of_a_study(study_of) -> None:
    study = study_of(max_hours=1e-9)
    study.run()
    began, *_, last = events_of(study)
    confirming = replace(began, kind=Kind.STUDY_RESUMED, at=last.at, data={**began.data, "confirms": True})
    write_log(study.db, study.name, [confirming, replace(last, at=last.at + 7200.0)], study.spec, resume=True)
    on = replace(study, max_hours=1.0).run(resume=True)
    assert on.results().frames.why_over == ""
    assert len(on.frames().phases["score"].dropna()) == 8


def test_a_study_may_get_a_second_objective_and_keeps_the_one_it_has(study_of) -> None:
    study = study_of(scheduler=FullRuns(RandomSearcher(SPACE), 1, 1))
    study.run()
    both = replace(study, second="depth", second_mode="min")
    both.run(resume=True)
    for changed, says in [
        ({"second": "other"}, 'second = "depth", not "other"'),
        ({"second_mode": "max"}, 'second_mode = "min", not "max"'),
        ({"second": None, "second_mode": "max"}, 'second = "depth", not null'),
    ]:
        with pytest.raises(StudyError, match=f"study 'aimed' was started with {says}: resume it as it was, or start"):
            replace(both, **changed).start(resume=True)
    assert replace(both, target_score=9.0).run(resume=True).results().frames.state == "ended"
