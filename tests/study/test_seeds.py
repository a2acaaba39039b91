"""Studies with several seeds a configuration: what is logged, and how they are resumed."""

import pytest

from tests.support import SPACE, Deterministic
from workbench import HyperTrick, RandomSearcher, Study, Uniform
from workbench.algos.quadratic import Quadratic
from workbench.algos.search.seeded import Seeded
from workbench.core.errors import InvalidInput
from workbench.study.file import recorded_study, study_from

QUADRATIC = {"h0": Uniform(0, 1), "h1": Uniform(0, 1)}


@pytest.fixture
def study_of(client, tmp_path):
    def make(**changes) -> Study:
        given = {"name": "seeded", "db": tmp_path / "kb.db", "client": client, "seeds": 2, **changes}
        return Study(**{"scheduler": HyperTrick(RandomSearcher(SPACE), 3, 2), "trainable": Deterministic, **given})

    return make


def test_a_configuration_s_trials_differ_in_their_seed_and_end_together(study_of) -> None:
    results = study_of().run().results()
    trials = results.frames.trials
    assert len(trials) == results.size.n_trials == 6
    for _, group in trials.groupby("candidate"):
        assert len(group) == 2
        assert group["lr"].nunique() == 1
        assert group["seed"].nunique() == 2
        assert group["phases"].nunique() == 1, "one verdict for both"
    waited = results.frames.decisions.query("mode == 'seeds'")
    assert set(waited["verdict"]) == {"pause"}
    assert not trials["confirms"].any()


def test_it_is_resumed_by_its_name_alone(study_of, client, tmp_path) -> None:
    study = study_of(trainable=Quadratic(), target_score=-1e9, scheduler=HyperTrick(QUADRATIC, 3, 2))
    n = len(study.run().frames().phases["score"].dropna())
    resumed = recorded_study(tmp_path / "kb.db", "seeded", client=client)
    assert resumed.scheduler == study.scheduler
    done = Study(**{**vars(resumed), "target_score": None, "client": client}).run(resume=True)
    trials = done.frames().trials
    assert len(trials) == 6 > n
    assert set(trials["state"]) <= {"finished", "stopped"}


def test_a_study_file_says_seeds() -> None:
    table = {
        "study": {"name": "filed", "seeds": 3, "judged_by": "iqm"},
        "space": {"h0": {"uniform": [0, 1]}, "h1": {"uniform": [0, 1]}},
        "scheduler": {"kind": "hypertrick", "n_trials": 4, "n_phases": 2},
        "trainable": {"kind": "quadratic"},
    }
    assert study_from(table).scheduler.n_trials == 12
    table["study"]["judged_by"] = "luck"
    with pytest.raises(InvalidInput, match="unknown judged_by 'luck'; known: iqm, mean, median"):
        study_from(table)


@pytest.mark.parametrize(("name", "value"), [("seeds", 5), ("judged_by", "median")])
def test_a_study_and_its_scheduler_do_not_say_different_seeds(study_of, name, value) -> None:
    seeded = Seeded(HyperTrick(RandomSearcher(SPACE), 3, 2), 2)
    with pytest.raises(InvalidInput, match=f"the study says {name}={value!r}, its Seeded scheduler .*: say it once"):
        study_of(**{"scheduler": seeded, name: value})
    assert study_of(scheduler=seeded, seeds=2).scheduler.seeds == 2
    assert study_of(scheduler=seeded, seeds=1).scheduler.seeds == 2
