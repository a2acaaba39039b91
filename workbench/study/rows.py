"""A study's outcome in words: the rows that `Results` shows."""

from collections.abc import Mapping
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Any

from workbench.core.showing import config_text, four_digits, so_many
from workbench.knowledge import Frames
from workbench.knowledge.frames import PHASES

if TYPE_CHECKING:
    import pandas as pd

    from workbench.study.results import Results

_JOINED = {"mean": "mean", "median": "median", "iqm": "middle mean"}
"""What `Seeded` may judge by, in words."""


def summary_rows(results: "Results") -> dict[str, str]:
    """Give a study's outcome as labels and words, for a terminal, a notebook or a report."""
    s = results.summary
    luckiest = {}
    if s["best_trial"] is not None:
        where = f"trial {s['best_trial']}, after {s['best_at_s']:.0f} s"
        luckiest = {"luckiest phase": f"{four_digits(s['best_score'])} ({where})"}
    states = ", ".join(f"{n} {state}" for state, n in s["states"].items())
    origin = {"origin": "simulated: nothing was trained, times are virtual"} if results.spec.get("simulated") else {}
    return {
        **origin,
        "state": ": ".join(filter(None, (results.frames.state, results.frames.why_over))),
        **({"aim": str(results.frames.aim)} if str(results.frames.aim) else {}),
        **_best_rows(results),
        **luckiest,
        **_front_row(results),
        "trials": f"{s['trials']}: {states}" if states else "none yet",
        **_failures(results),
        "phases": f"{s['phases']} completed, {so_many(s['retries'], 'attempt')} lost",
        "occupancy": "no slot has joined" if isnan(s["occupancy"]) else f"{s['occupancy']:.1%} of the slots' time",
        "completion rate": _alpha(s),
        "wall time": f"{s['wall_s']:.1f} s",
    }


def summary_text(results: "Results") -> str:
    """Write a study's outcome as lines."""
    rows = summary_rows(results)
    width = max(len(label) for label in rows)
    return "\n".join([f"study {results.name}", *(f"  {label:<{width}}  {value}" for label, value in rows.items())])


def summary_html(results: "Results") -> str:
    """Write a study's outcome as a table."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(label)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
        for label, value in summary_rows(results).items()
    )
    return f"<table><caption>study {escape(results.name)}</caption>{cells}</table>"


def _alpha(s: Mapping[str, Any]) -> str:
    """Tell the completion rate; below its minimum, say of what runs that is: of none that end early or lose trials."""
    alpha = "unknown: its record does not tell how large the study is" if s["alpha"] is None else f"{s['alpha']:.1%}"
    if "alpha_expected" not in s:
        return alpha
    below = s["alpha"] is not None and s["alpha"] < s["alpha_minimum"] - 1e-9
    planned = " if it runs as planned" * below
    return f"{alpha} (expected {s['alpha_expected']:.1%}, minimum {s['alpha_minimum']:.1%}{planned})"


def _best_rows(results: "Results") -> dict[str, str]:
    """Say which configuration to take, and what was confirmed or is claimed of it."""
    best = results.best
    if not best:
        return {"best score": "no score yet"}
    config = config_text(results.best_config)
    whose, n, score = f"configuration of trial {best['trial']}", best["claimed_on"], four_digits(results.best_score)
    if "confirmed" not in best:
        joined = f"{_JOINED[results.judged_by]} of " * (n > 1) + _seeds(n)
        return {"best score": f"{score} ({whose}), claimed on {joined}", "best config": config}
    from workbench.analysis.confirmed import deciding

    fresh, rivals = best["confirmed_on"], len(deciding(results.claims, results.confirmed))
    if not isnan(best["low"]):
        score += f" [{four_digits(best['low'])}, {four_digits(best['high'])}]"
    chosen = f", the best of {rivals} confirmed" * (rivals > 1)
    on = f"{_seeds(n)} claimed {four_digits(best['claimed'])}"
    return {
        "confirmed score": f"{score} ({'mean of ' * (fresh > 1)}{_seeds(fresh)}, fresh{chosen}; {on})",
        "confirmed config": f"{config} ({whose})",
    }


def _front_row(results: "Results") -> dict[str, str]:
    if (second := results.frames.aim.second) is None:
        return {}
    rows = (table := front_of(results))[table["on_front"]]
    members = [
        f"trial {row.trial} ({four_digits(row.score)}, {second} {four_digits(row.second)})" for row in rows.itertuples()
    ]
    none = why_no_front(results.frames) or f"no phase has ended with a metric {second}"
    return {"front": "; ".join(members) or none}


def front_of(results: "Results") -> "pd.DataFrame":
    """Hold the score against the second objective, which there is, phases beyond the study's own not counted."""
    from workbench.analysis import front

    aim, phases, n = results.frames.aim, results.frames.searched, results.size.n_phases
    within = phases if n is None else phases[phases["phase"] < n]
    return front(within, str(aim.second), aim.mode, aim.second_mode, planned(results), results.judged_by)


def planned(results: "Results") -> "pd.DataFrame":
    """Give the trials without phases beyond those that the study gives one, which a person added."""
    from workbench.analysis import up_to

    return up_to(results.frames.trials, results.frames.phases, results.size.n_phases)


def why_no_front(frames: Frames) -> str:
    """Say that no phase has returned the second objective, and what they have; empty if one has, or none has ended."""
    returned = frames.phases.columns.difference(PHASES)
    if frames.aim.second in returned or not frames.phases["ended_s"].notna().any():
        return ""
    return f"no phase has returned the metric {frames.aim.second!r}, only {', '.join(returned) or 'its score'}"


def _failures(results: "Results") -> dict[str, str]:
    from workbench.analysis import failure_lines

    lines = failure_lines(results.frames.trials)
    return {"failed of": "; ".join(lines)} if lines else {}


def _seeds(n: int) -> str:
    return "one seed" if n == 1 else f"{n} seeds"
