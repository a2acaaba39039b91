"""The tests of a file are found by its name: workbench/a/b.py has tests/a/test_b.py, or the tests named here."""

from pathlib import Path

ROOT = Path(__file__).parents[1]

ELSEWHERE = {  # what is no more than a part of something, and is tested as that: the tests that would fail
    "algos/function/factory.py": "algos/function/test_trial.py",
    "algos/function/state.py": "algos/function/test_trial.py",
    "algos/rl/ba3c/exchange.py": "algos/rl/ba3c/test_rank.py",
    "algos/rl/ba3c/handshake.py": "algos/rl/ba3c/test_connection.py",
    "algos/rl/ba3c/peers.py": "algos/rl/ba3c/test_local_gang.py",
    "algos/rl/ba3c/player.py": "algos/rl/ba3c/test_rank.py",
    "algos/rl/ba3c/settings.py": "algos/rl/ba3c/test_trial.py",
    "algos/rl/checkpoint.py": "algos/rl/test_evaluate.py",
    "algos/rl/hts/executor.py": "algos/rl/hts/test_trial.py",
    "algos/rl/playable.py": "algos/rl/test_environment.py",
    "algos/rl/predictions.py": "algos/rl/test_trial.py",
    "algos/rl/rollout.py": "algos/rl/test_agents.py",
    "algos/rl/sb3/checkpoint.py": "algos/rl/sb3/test_sb3.py",
    "algos/rl/sb3/draws.py": "algos/rl/sb3/test_sb3.py",
    "algos/rl/sb3/factory.py": "algos/rl/sb3/test_sb3.py",
    "algos/rl/sb3/make.py": "algos/rl/sb3/test_sb3.py",
    "algos/rl/sb3/settings.py": "algos/rl/sb3/test_sb3.py",
    "algos/rl/sb3/trial.py": "algos/rl/sb3/test_sb3.py",
    "algos/rl/settings.py": "algos/rl/ga3c/test_trial.py",
    "algos/rl/workers.py": "algos/rl/test_trial.py",
    "algos/search/bracket.py": "algos/search/test_halving.py",
    "algos/search/evolution.py": "algos/search/test_searchers.py",
    "algos/search/full.py": "algos/search/test_contract.py",
    "algos/search/lone.py": "algos/search/test_contract.py",
    "algos/search/optuna.py": "algos/search/test_searchers.py",
    "algos/search/trials.py": "algos/search/test_contract.py",
    "algos/search/warmup.py": "algos/search/test_searchers.py",
    "analysis/completion.py": "core/test_size.py",
    "analysis/forests.py": "analysis/test_importance.py",
    "cli/evaluate.py": "cli/test_main.py",
    "cli/options.py": "cli/test_main.py",
    "cli/paper.py": "paper/test_scoreboard.py",
    "cli/run.py": "cli/test_main.py",
    "cluster/connection.py": "cluster/test_recovery.py",
    "cluster/forked.py": "cluster/test_local.py",
    "cluster/manifest.py": "cluster/test_checkpoints.py",
    "cluster/memory.py": "cluster/test_dask.py",
    "cluster/place.py": "cluster/test_object_store.py",
    "cluster/seats.py": "cluster/test_attempts.py",
    "cluster/task.py": "cluster/test_dask.py",
    "cluster/tasks.py": "cluster/test_dask.py",
    "core/domains.py": "core/test_space.py",
    "core/imports.py": "study/test_own.py",
    "core/protocols.py": "algos/search/test_contract.py",
    "core/registry.py": "core/test_describe.py",
    "core/resume.py": "core/test_record.py",
    "knowledge/carry.py": "study/test_pack.py",
    "knowledge/lock.py": "hostile/test_two_drivers.py",
    "knowledge/remove.py": "cli/test_studies.py",
    "knowledge/rows.py": "knowledge/test_reader.py",
    "knowledge/sheets.py": "knowledge/test_frames.py",
    "paper/hts/asynchronous.py": "paper/hts/test_counterparts.py",
    "paper/learned.py": "paper/test_scoreboard.py",
    "paper/numbers.py": "paper/test_scoreboard.py",
    "simulation/cluster.py": "simulation/test_scenario.py",
    "simulation/outcome.py": "simulation/test_run.py",
    "simulation/sources.py": "cli/test_simulate.py",
    "study/attached.py": "study/test_launch.py",
    "study/callbacks.py": "study/test_export.py",
    "study/drawn.py": "study/test_results.py",
    "study/export/exporter.py": "study/test_export.py",
    "study/export/mlflow.py": "study/test_export.py",
    "study/export/wandb.py": "study/test_other_tools.py",
    "study/export/optuna.py": "study/test_export.py",
    "study/export/tensorboard.py": "study/test_export.py",
    "study/rows.py": "study/test_aim.py",
    "study/unpack.py": "study/test_pack.py",
    "study/warm.py": "study/test_more.py",
    "viz/dashboard/estimator.py": "viz/dashboard/test_rates.py",
    "viz/dashboard/explored.py": "viz/dashboard/test_dashboard.py",
    "viz/dashboard/trial_rows.py": "viz/dashboard/test_board.py",
    "viz/dashboard/feed.py": "viz/dashboard/test_dashboard.py",
    "viz/dashboard/lines.py": "viz/dashboard/test_board.py",
    "viz/dashboard/live.py": "viz/dashboard/test_dashboard.py",
    "viz/dashboard/pips.py": "viz/dashboard/test_board.py",
    "viz/dashboard/spans.py": "viz/dashboard/test_board.py",
    "viz/dashboard/stored.py": "viz/dashboard/test_dashboard.py",
    "viz/dashboard/static.py": "viz/dashboard/test_dashboard.py",
    "viz/dashboard/words.py": "viz/dashboard/test_board.py",
    "viz/figures/front.py": "analysis/test_front.py",
    "viz/figures/lineage.py": "viz/figures/test_population.py",
    "viz/figures/pbt_toy.py": "viz/figures/test_papers.py",
}
CATALOGUED = "paper/test_catalogue.py"  # runs every experiment of every paper, and names every published number


def test_every_file_has_tests_that_are_found_by_its_name() -> None:
    files = (path.relative_to(ROOT / "workbench") for path in (ROOT / "workbench").rglob("*.py"))
    without = {
        path.as_posix()
        for path in files
        if path.name[:2] != "__" and not (ROOT / "tests" / path.parent / f"test_{path.name}").exists()
    }
    of_papers = {path for path in without if path.startswith("paper/") and path not in ELSEWHERE}
    assert without - of_papers == ELSEWHERE.keys()
    assert all((ROOT / "tests" / where).exists() for where in [*ELSEWHERE.values(), CATALOGUED])
