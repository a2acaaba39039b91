"""PBT as a study on real workers: donors' checkpoints and configs, figures, the best schedule and its replay."""

import json
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support import Deterministic
from workbench import (
    GA3C,
    PBT,
    Budget,
    DigitsClassifier,
    FullRuns,
    ListSearcher,
    LogUniform,
    RandomSearcher,
    Replay,
    Space,
    Study,
    Uniform,
)
from workbench.cli.main import main
from workbench.core.protocols import Kind
from workbench.core.size import size_of
from workbench.knowledge import KnowledgeBase
from workbench.simulation import keep, simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.trained import TrainedPhases
from workbench.study.results import Results

SPACE = Space({"learning_rate": LogUniform(1e-4, 1e-2), "t_max": LogUniform(2, 20, step=1)})
PATIENT = {"max_retries": 20, "stall_s": 3000.0}  # where much else computes, workers come and go
CARTPOLE = GA3C(game="CartPole-v1", phase=Budget(updates=15), n_agents=4, min_games=1, lockstep=True, device="cpu")


def population(n: int = 4, n_phases: int = 3, **settings) -> PBT:
    return PBT(RandomSearcher(SPACE), n, n_phases, share=0.5, **settings)


@pytest.fixture(scope="module")
def study(client, tmp_path_factory):
    """Four members on two workers, three phases."""
    db = tmp_path_factory.mktemp("pbt") / "kb.db"
    study = Study("population", population(), CARTPOLE, db=db, client=client, **PATIENT)
    study.run()
    return study


@pytest.fixture(scope="module")
def results(study):
    return Results.open(study.db, study.name)


def test_a_loser_goes_on_with_the_donor_s_weights_and_a_config_near_its_own(study, results) -> None:
    trials = results.frames.trials.set_index("trial")
    known = results.lineage
    copies = known[known["copied"]]
    assert len(copies) > 0
    for row in copies.itertuples():
        mine, donor = trials.loc[row.trial], trials.loc[row.parent]
        factor = mine["learning_rate"] / donor["learning_rate"]
        assert any(np.isclose(factor, f) for f in (0.8, 1.2)) or mine["learning_rate"] in (1e-4, 1e-2)
        assert mine["seed"] != donor["seed"]


def test_a_copy_counts_its_updates_on_from_its_donor_s(results) -> None:
    """The donor's checkpoint was loaded: 15 updates a phase, over the whole descent."""
    from workbench.analysis import ancestry

    phases = results.frames.phases.set_index(["trial", "phase"])
    for row in results.lineage.itertuples():
        first = phases.loc[(row.trial, row.first_phase)]
        trained_before = len(ancestry(results.lineage, row.trial)) - (row.last_phase - row.first_phase + 1)
        assert first["updates"] >= 15 * (trained_before + 1)
        assert first["updates"] <= 18 * (trained_before + 1)


def test_the_checkpoint_a_copy_began_with_is_kept(study, results) -> None:
    copy = results.lineage[results.lineage["copied"]].iloc[0]
    name = f"trial-{copy['parent']:05d}/phase-{copy['parent_phase']:03d}"
    trial = CARTPOLE({}, 0)
    study.checkpoint_store.load(trial, name)
    assert all(torch.isfinite(p).all() for p in trial.model.parameters())
    trial.close()


def test_the_recorded_schedule_has_a_row_for_every_member_and_phase(results) -> None:
    table = results.schedules
    assert table[["member", "phase"]].to_numpy().tolist() == [[m, p] for m in range(4) for p in range(3)]


def test_a_study_with_lineage_shows_it_in_figures_and_report(results, tmp_path, drawn_once) -> None:
    figures = results.figures()
    extra = ["population", "hyperparameters over time", "lineage", "phylogenetic tree"]
    assert list(figures)[-4:] == extra
    page = results.write_report(tmp_path / "report.html").read_text()
    assert "The descent of all weights" in page


def test_a_study_without_lineage_shows_none(client, tmp_path) -> None:
    study = Study(
        "plain", FullRuns(RandomSearcher(SPACE), 2, 1), CARTPOLE, db=tmp_path / "kb.db", client=client, **PATIENT
    )
    results = study.run().results()
    assert not results.has_lineage
    assert "lineage" not in results.figures()


def test_the_best_schedule_is_written_and_replayed_in_single_runs(study, results, client, tmp_path, capsys) -> None:
    file = tmp_path / "made" / "best.json"
    assert main(["schedule", study.name, "--db", str(study.db), "--out", str(file)]) == 0
    assert "learning_rate" in capsys.readouterr().out
    table = results.best_schedule()
    written = json.loads(file.read_text())
    assert [phase["config"]["t_max"] for phase in written["phases"]] == table["t_max"].tolist()
    assert written["trainable"]["kind"] == "ga3c"

    replay = Study(
        "replay",
        FullRuns(ListSearcher([{}, {}]), 2, len(table)),
        Replay(file),
        db=tmp_path / "kb.db",
        client=client,
        **PATIENT,
    )
    phases = replay.run().frames().phases
    for _, mine in phases.sort_values("phase").groupby("trial"):
        assert mine["replayed_learning_rate"].tolist() == pytest.approx(table["learning_rate"].tolist())
        assert mine["replayed_t_max"].tolist() == table["t_max"].tolist()


def test_a_population_of_classifiers_trains_on_real_workers(client, tmp_path) -> None:
    """A trial need not be reinforcement learning."""
    space = Space({"learning_rate": LogUniform(1e-3, 1.0), "dropout": Uniform(0.0, 0.7)})
    scheduler = PBT(RandomSearcher(space), 4, 6, share=0.5)  # who is judged when is for the workers to say
    trainable = DigitsClassifier(phase=Budget(updates=40))
    study = Study("digits", scheduler, trainable, db=tmp_path / "kb.db", client=client, **PATIENT)
    results = study.run().results()
    table = results.schedules
    assert len(table) == 24
    assert results.lineage["copied"].any()
    last = table[table["phase"] == 5]["score"]
    assert last.max() > 0.9
    assert last.min() > table[table["phase"] == 0]["score"].min()


@dataclass(frozen=True)
class InTurn:
    """Trials whose score rises: those of a low rate end once one of a high rate has, which goes on when it may."""

    folder: str

    def __call__(self, config, seed) -> Deterministic:
        trial = Deterministic(config, seed)
        train, pause, high = trial.train_phase, threading.Event(), config["lr"] > 0.5

        def train_phase(progress) -> dict[str, float]:
            if high and trial.phase:
                (Path(self.folder) / "ended").touch()
            while (trial.phase > 0 or not high) and not (Path(self.folder) / ("go" if high else "ended")).exists():
                progress({"waiting": 1.0})
                pause.wait(0.02)
            return {**train(progress), "score": trial.phase + config["lr"]}

        trial.train_phase = train_phase  # type: ignore[method-assign]
        return trial


def test_a_copy_whose_driver_died_before_it_began_still_finds_its_donor_s_weights(client, tmp_path) -> None:
    """On one node the donor goes on first, and removes what it has no need of itself."""

    def dies(events) -> None:
        if any(e.kind is Kind.RUN and e.data["parent"] not in (None, e.trial) for e in events):
            raise KeyboardInterrupt

    def resumable(**more) -> Study:
        searcher = ListSearcher([{"lr": 0.9}, {"lr": 0.1}])
        scheduler = PBT(searcher, 2, 6, share=0.5, explore=False, space=Space({"lr": LogUniform(0.1, 1)}))
        return Study("cut", scheduler, InTurn(str(tmp_path)), db=tmp_path / "kb.db", **more, **PATIENT)

    with pytest.raises(KeyboardInterrupt):
        resumable(client=client, callbacks=[dies]).start().wait()
    (tmp_path / "go").touch()
    assert resumable(nodes=1).run(resume=True).frames().state == "ended"
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        events = kb["cut"].events()
    assert [e.data["parent"] for e in events if e.kind is Kind.RUN][:3] == [None, None, 0]
    ended = [(e.trial, e.phase) for e in events if e.kind is Kind.PHASE_ENDED]
    assert ended.index((0, 5)) < ended.index((2, 1))
    assert not [e for e in events if "recovered" in e.data]


def test_a_replay_is_resumed_by_name(study, tmp_path, client) -> None:
    from workbench.study.file import study_from_record

    trainable = Replay([{"learning_rate": 1e-3}], CARTPOLE)
    study = Study(
        "again", FullRuns(ListSearcher([{}]), 1, 1), trainable, db=tmp_path / "kb.db", client=client, **PATIENT
    )
    study.run()
    again = study_from_record("again", study.spec, db=tmp_path / "kb.db", client=client)
    assert again.trainable == trainable
    assert again.run(resume=True).progress.state == "ended"


@pytest.mark.slow
def test_the_same_population_in_virtual_time_repeats_and_leaves_the_same_kind_of_log(tmp_path) -> None:
    def played(folder):
        events: list = []
        outcome = simulate(population(), TrainedPhases(CARTPOLE, tmp_path / folder), VirtualCluster(2), events=events)
        return outcome, events

    (first, events), (second, _) = played("a"), played("b")
    assert first.scores.tolist() == second.scores.tolist()
    study = Study("virtual", population(), CARTPOLE)
    keep(tmp_path / "kb.db", "virtual", study.spec, events, size_of(study.scheduler))
    results = Results.open(tmp_path / "kb.db", "virtual")
    assert results.has_lineage
    assert len(results.schedules) == 12
    assert "phylogenetic tree" in results.figures()
