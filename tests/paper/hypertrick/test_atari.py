"""The Atari studies beside the published numbers, on recordings of a small log whose numbers are known."""

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from tests.knowledge.studies import a_study
from tests.support import SPACE
from workbench import HyperTrick, RandomSearcher
from workbench.core.places import DATA
from workbench.core.protocols import Event, Kind
from workbench.core.size import Size, size_of
from workbench.knowledge import Recording, StudyLog, record
from workbench.paper.hypertrick import atari
from workbench.paper.hypertrick.published import BUSIER, FASTER, SAME, SIMILAR, SOONER
from workbench.study.file import read_preset, study_from

TRAINABLE = {"kind": "ga3c", "game": "Boxing", "phase": {"frames": 200_000}}


def _slower(event, factor):
    """Let everything happen later, and every trial have a configuration of its own."""
    data = event.data | {"config": {"lr": float(event.trial)}} if event.kind is Kind.RUN else event.data
    return replace(event, at=event.at * factor, data=data)


@pytest.fixture
def root(tmp_path):
    """A HyperTrick study of 9 s and a Hyperband study that took twice as long for the same."""
    for name, slower in (("hypertrick", 1), ("hyperband", 2)):
        space = read_preset("cartpole")["space"] if slower == 1 else {"lr": {"uniform": [0.0, 1.0]}}
        scheduler = {"kind": name, "n_trials": 3, "n_phases": 2, "searcher": {"kind": "random", "space": space}} | (
            {"eviction_rate": 0.9, "seed": 0} if slower == 1 else {}
        )
        with_log = StudyLog(tmp_path / "kb.db", name, {"seed": 0, "scheduler": scheduler, "trainable": TRAINABLE})
        size = size_of(HyperTrick(RandomSearcher(SPACE), 3, 2, 0.9)) if slower == 1 else Size(3, 3, 2, 6.0)
        began = Event(Kind.STUDY_STARTED, 0.0, data={"size": size.to_json()})
        with_log.append([began, *(_slower(event, slower) for event in a_study())])
        with_log.close()
        record(tmp_path / "kb.db", name, tmp_path / f"boxing-{name}")
    return tmp_path


def test_nothing_recorded_leaves_the_numbers_out(tmp_path) -> None:
    assert atari.recorded_studies("boxing", tmp_path) == {}
    assert atari.recorded_games(tmp_path) == {}  # a game without studies is none
    assert list(atari.counterparts(tmp_path)) == []


def test_scale_is_told_in_words(root) -> None:
    told = atari.scale_of(atari.recorded_studies("boxing", root)["hypertrick"])
    assert told == "3 trials of up to 2 phases of 200,000 frames on 2 nodes"


def _found(root) -> dict[str, tuple]:
    """What the studies say, by place and name: verdict and value."""
    return {(of.where, of.what): (ours.verdict, ours.value) for of, ours in atari.counterparts(root)}


def test_measured_numbers_of_a_known_log_are_not_comparable(root) -> None:
    found = _found(root)
    table = {what: of for (where, what), of in found.items() if where == "Table 1"}
    # 3 of 6 phases ended
    assert table == {
        "measured alpha, boxing": ("not comparable", pytest.approx(50)),
        "best score, boxing": ("not comparable", 5),
    }
    table = {what: of for (where, what), of in found.items() if where == "Table 3"}
    assert table == {
        "best score, HyperTrick, boxing": ("not comparable", 5),
        "best score, Hyperband, boxing": ("not comparable", 5),
        "wall time, HyperTrick over Hyperband, boxing": ("not comparable", 1),  # as much was played: a slower machine
        "time to best score, HyperTrick over Hyperband, boxing": ("not comparable", 1),
    }
    whys = [ours.why for number, ours in atari.counterparts(root) if number.where == "Table 3"]
    assert all("; scores of random play" in why for why in whys)
    assert ["; a narrower space" in why for why in whys] == [False, True, False, False]  # Hyperband's own


def test_a_study_without_its_rival_has_its_own_numbers_and_no_claims(root) -> None:
    shutil.rmtree(root / "boxing-hyperband")
    assert set(_found(root)) == {
        ("Table 1", "measured alpha, boxing"),
        ("Table 1", "best score, boxing"),
        ("Table 3", "best score, HyperTrick, boxing"),
    }


def test_what_another_learner_found_says_so(root, monkeypatch) -> None:
    study = atari.recorded_studies("boxing", root)["hypertrick"]
    of_ppo = replace(study, spec=study.spec | {"trainable": TRAINABLE | {"kind": "hts"}})
    monkeypatch.setattr(
        atari, "recorded_studies", lambda game, root: {"hypertrick": of_ppo} if game == "boxing" else {}
    )
    assert all("; another learner, hts, and its space" in ours.why for _, ours in atari.counterparts(root))


def test_over_games_it_is_asked_who_is_faster_and_busier_and_one_game_decides_nothing(root) -> None:
    claims = {what: of for (where, what), of in _found(root).items() if where == "Sec. 5.2.4"}
    assert claims == {FASTER: ("undecided", 0), BUSIER: ("undecided", pytest.approx(0))}
    used = min(study.summary["occupancy"] for study in atari.recorded_studies("boxing", root).values())
    whys = [ours.why for number, ours in atari.counterparts(root) if number.what in (FASTER, BUSIER)]
    assert all(f"on 2 nodes, which both keep busy for {100 * used:.0f} % of the time or more" in why for why in whys)


def test_where_something_was_learned_the_best_is_compared_too(root, monkeypatch) -> None:
    studies = atari.recorded_studies("boxing", root)
    assert not any(map(atari.learned, studies.values()))  # the best score is that of a first phase
    for study in studies.values():
        phases = study.frames.phases  # the first phases' scores are 5 and 1, with a deviation of 2.8
        phases.loc[(phases["trial"] == 0) & (phases["phase"] == 1), "score"] = 13.4
        assert not atari.learned(study)
        phases.loc[(phases["trial"] == 0) & (phases["phase"] == 1), "score"] = 13.5
        assert atari.learned(study)
    monkeypatch.setattr(atari, "recorded_studies", lambda game, root: studies if game == "boxing" else {})
    found = _found(root)
    assert found["Sec. 5.2.4", SOONER] == ("undecided", 0)
    assert found["Sec. 5.2.4", SIMILAR] == ("undecided", pytest.approx(0))  # 13.5 for 13.5, in one game
    assert found["Sec. 5.2.4", SAME] == ("undecided", 1)  # by chance one time in three
    totals = studies["hypertrick"].summary
    excess = pytest.approx(100 * (totals["alpha"] - totals["alpha_expected"]))
    assert found["Sec. 5.2.3", "alpha is close to its expectation, or slightly above"] == ("undecided", excess)


def test_only_trials_that_ran_to_the_end_have_whole_curves(root) -> None:
    curves = atari.whole_curves(atari.recorded_studies("boxing", root)["hypertrick"])
    assert set(curves["trial"]) == {0}
    assert curves["x"].tolist() == [40]  # frames; its second phase told none


def test_at_the_end_only_last_scores_of_whole_trials_count(root) -> None:
    study = atari.recorded_studies("boxing", root)["hypertrick"]
    phases = study.frames.phases
    phases.loc[phases["phase"] == 0, "score"] = 99.0
    phases.loc[phases["phase"] == 1, "score"] = 7.0
    assert atari.best_at_the_end(study) == 7


def test_studies_side_by_side(root) -> None:
    table = atari.summary(atari.recorded_studies("boxing", root))
    assert table.loc["completion rate"].tolist() == [0.5, 0.5]
    assert table.loc["wall time [min]"].tolist() == pytest.approx([0.15, 0.3])
    assert table.loc["time to best score [min]", "hyperband"] == 2 * table.loc["time to best score [min]", "hypertrick"]


@pytest.mark.parametrize("game", atari.GAMES)
def test_both_schedulers_run_the_same_configurations_at_equal_expected_work(game) -> None:
    hypertrick, hyperband = (
        study_from(read_preset(atari.preset_of(game, scheduler))) for scheduler in atari.SCHEDULERS
    )
    assert hypertrick.trainable == hyperband.trainable
    assert hypertrick.scheduler.searcher == hyperband.scheduler.searcher
    assert hypertrick.nodes == hyperband.nodes == 2
    of_its_size = game in ("centipede", "ms_pacman")  # the paper's of Sec. 5.2.4
    assert hypertrick.scheduler.n_trials == (46 if of_its_size else 15)
    the_papers = study_from(read_preset("cartpole")).scheduler.searcher.space
    assert (hypertrick.scheduler.searcher.space == the_papers) == of_its_size
    trick, band = (study.scheduler.expected_phases for study in (hypertrick, hyperband))
    assert trick == pytest.approx(band, rel=0.01)


@pytest.mark.slow
def test_a_small_one_run_again_has_the_schema_and_provenance_of_the_recorded(tmp_path) -> None:
    table = read_preset("ms-pacman-hypertrick")
    table["scheduler"] |= {"n_trials": 3, "n_phases": 2}
    table["trainable"] |= {"phase": {"frames": 1000}, "n_agents": 2, "max_episode_frames": 200}
    study_from(table, db=tmp_path / "kb.db").run()
    again, kept = record(tmp_path / "kb.db", "ms-pacman-hypertrick", tmp_path / "again"), DATA / "ms-pacman-hypertrick"
    for table in ("events", "metrics"):
        columns = [pd.read_parquet(folder / f"{table}.parquet").dtypes for folder in (again, kept)]
        assert columns[0].equals(columns[1])
    abouts = [json.loads((folder / "provenance.json").read_text()) for folder in (again, kept)]
    assert abouts[0].keys() == abouts[1].keys()
    assert Recording.open(again).spec.keys() == Recording.open(kept).spec.keys()


def test_a_row_over_games_lists_the_presets_that_its_numbers_are_of() -> None:
    recipe = atari._origin("ms_pacman", "pong", scheduler="hypertrick").recipe
    assert recipe.endswith("--preset PRESET --record data/PRESET; PRESET: ms-pacman-hypertrick, pong-hypertrick-2m")
    assert "--preset pong-SCHEDULER-2m --record data/pong-SCHEDULER-2m" in atari._origin("pong").recipe
