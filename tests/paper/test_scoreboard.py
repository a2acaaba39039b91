"""The scoreboard: every published number once, ours beside it, nothing typed in."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.knowledge.test_knowledge import a_study
from workbench.cli.main import main
from workbench.core.places import DATA
from workbench.knowledge import StudyLog, record
from workbench.paper.catalogue import EXPERIMENTS
from workbench.paper.experiments import _keep
from workbench.paper.published import ALL, GA3C_TABLE_2
from workbench.paper.scoreboard import page, recordings, scoreboard


def of(rows, where: str) -> dict[str, tuple]:
    return {r.number.what: (r.verdict, r.ours.value if r.ours else None) for r in rows if r.number.where == where}


def test_every_published_number_has_one_row() -> None:
    assert [row.number for row in scoreboard()] == ALL


def test_formulas_and_the_toy_problem_need_no_recording(tmp_path) -> None:
    rows = scoreboard(tmp_path)
    assert {verdict for verdict, _ in of(rows, "Table 2").values()} >= {"agrees", "not run"}
    assert of(rows, "Sec. 5.2.4")["Hyperband, R = 27, eta = 3"] == ("agrees", 46)
    assert of(rows, "Figs 2, 3, 8, 9")["makespan, HyperTrick"] == ("agrees", pytest.approx(10))
    assert not [row for row in rows if row.ours is not None and row.ours.source == "measured"]


def test_measured_numbers_are_read_off_the_recording_and_may_differ(tmp_path) -> None:
    rows = [
        {"network": name, "ga3c_pps": ga3c * (1.1 if name == "small" else 0.1), "a3c_pps": a3c, "ratio": 1.0}
        for name, (a3c, ga3c) in GA3C_TABLE_2.items()
    ]
    _keep(tmp_path / "ga3c-networks", rows, ABOUT)
    found = of(scoreboard(tmp_path), "Table 2")
    assert found["GA3C, small"] == ("agrees", pytest.approx(1361 * 1.1))
    assert found["GA3C, large-1"][0] == "differs"
    assert found["A3C, large-1"][0] == "agrees"
    assert found["GA3C over A3C, large-1"] == ("differs", 1.0)
    assert "measured at scale 'minutes' on 2 cores, 2026-01-01" in page(scoreboard(tmp_path))


ABOUT = {"source": "measured", "scale": "minutes", "cores": 2, "date": "2026-01-01T00:00:00"}


def test_the_better_least_training_batch_is_found_from_the_last_scores(tmp_path) -> None:
    scores = {"0": 10.0, "20": 50.0, "80": 70.0}
    rows = [{"variant": v, "seed": 0, "frames": f, "score": s * f} for v, s in scores.items() for f in (1, 2)]
    _keep(tmp_path / "ga3c-training-batch", rows, ABOUT)
    assert of(scoreboard(tmp_path), "Fig. 7") == {
        "best least training batch, from": ("agrees", 80),
        "best least training batch, to": ("differs", 80),
    }


def test_our_networks_have_the_published_numbers_of_parameters(tmp_path) -> None:
    rows = of(scoreboard(tmp_path), "Fig. 6")
    assert rows["fully connected width 128"] == ("agrees", 332_295)
    assert {verdict for verdict, _ in rows.values()} == {"agrees"}


def test_scaling_is_a_model_s(tmp_path) -> None:
    scaling = {"kind": "scaling", "link": "10 Gbit/s, 50 us", "way": "4 servers, 90 % awaited"}
    rows = [scaling | {"n_nodes": n, "points_per_s": rate} for n, rate in ((1, 100.0), (64, 1500.0))]
    _keep(tmp_path / "ba3c-scaling-model", rows, ABOUT | {"source": "model"})
    _keep(tmp_path / "ba3c-scaling", [{"kind": "ranks", "n_ranks": 1, "points_per_s": 90.0}], ABOUT)
    (row,) = [r for r in scoreboard(tmp_path) if r.number.where == "Fig. 8"]
    assert (row.verdict, row.ours.value, row.ours.source) == ("differs", 15, "model")


def test_speedups_at_the_least_and_the_most_variance_stand_beside_the_published(tmp_path) -> None:
    shown = {"law": "gamma", "n_agents": 4, "sync_interval": 5, "mean_ms": 10.0, "synchronous_learning_s": 0.0}
    rows = [
        shown | {"cv": cv, "seed": 0, "speedup": found, "hts_return": 1.0, "synchronous_return": 1.0}
        for cv, found in ((1.0, 3.0), (0.1, 1.4), (3.0, 4.5))
    ]
    _keep(tmp_path / "hts-speedup", [*rows, rows[0] | {"law": "pareto", "cv": 4.0, "speedup": 9.0}], ABOUT)
    assert of(scoreboard(tmp_path), "Fig. 4 (left)") == {
        "speed-up at low step-time variance, about": ("agrees", 1.4),
        "speed-up at high step-time variance, above": ("differs", 4.5),
    }


def test_pbt_s_numbers_have_intervals_over_the_seeds(tmp_path) -> None:
    finals = {"PBT": (1.19, 1.21), "grid": (0.2, 0.3)}
    toy = [
        {"reading": "as chosen", "variant": v, "seed": s, "final": q}
        for v, qs in finals.items()
        for s, q in enumerate(qs)
    ]
    _keep(tmp_path / "pbt-toy", toy, ABOUT)
    gains = {"10": (0.9, 0.95), "20": (0.7, 0.8)}  # the paper's: 0.986 and 1.2
    design = [
        {"design": "population", "value": n, "final": 100 * gain, "random_final": 100.0}
        for n, both in gains.items()
        for gain in both
    ]
    _keep(tmp_path / "pbt-design", design, ABOUT)
    rows = scoreboard(tmp_path)
    assert of(rows, "Fig. 2") == {"grid search, about": ("differs", 0.25), "PBT, about": ("agrees", pytest.approx(1.2))}
    found = of(rows, "Fig. 5(a)")
    assert found["PBT over random search, 10 members"] == ("agrees", pytest.approx(0.925))
    assert found["PBT over random search, 20 members"] == ("differs", pytest.approx(0.75))
    assert found["PBT over random search, 40 members"] == ("not run", None)


def test_what_was_not_run_is_grouped_with_its_reason(tmp_path) -> None:
    rows = scoreboard(tmp_path)  # where nothing is recorded
    assert all(row.why for row in rows if row.ours is None)
    written = page(rows)
    assert "| Table 3 | score | after one day, amidar: 218; after one day, boxing: 92;" in written
    assert "| a day on a GPU for each game |" in written
    assert not any(line.count("|") not in (0, 5, 8) for line in written.splitlines())


def test_recordings_are_listed_with_their_scale(tmp_path) -> None:
    _keep(tmp_path / "pbt-toy", [{"a": 1}], ABOUT | {"shows": "PBT, Fig. 2", "seconds": 12.4})
    lines = recordings(tmp_path).splitlines()
    assert "| `pbt-toy` | PBT, Fig. 2 | measured at scale 'minutes' on 2 cores, 2026-01-01 | 12 |" in lines
    assert sum(line.endswith("| not recorded yet | |") for line in lines) == len(EXPERIMENTS) - 1


def test_recorded_studies_are_listed_with_what_ran(tmp_path) -> None:
    spec = {"seed": 0, "scheduler": {"kind": "full"}, "trainable": {"kind": "ga3c", "game": "Pong"}}
    log = StudyLog(tmp_path / "kb.db", "night", spec)
    log.append(a_study())
    log.close()
    record(tmp_path / "kb.db", "night", tmp_path / "pong-night")
    *_, line = recordings(tmp_path).splitlines()
    day = datetime.now(UTC).date()
    assert line == f"| `pong-night` | full over ga3c on Pong, 3 trials | 3 | 2 | 0 | {day} |"


def test_the_committed_page_is_what_the_recordings_say(capsys, tmp_path) -> None:
    assert main(["scoreboard", "--write", str(tmp_path / "page.md")]) == 0
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert written == Path(DATA.parent / "docs" / "reproduction.md").read_text(encoding="utf-8")
