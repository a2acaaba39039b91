"""What a study claims of its best configurations, and what fresh seeds say of them."""

import math
from typing import Any

import pandas as pd

from workbench.analysis.bootstrap import mean_of
from workbench.analysis.reliable import probability_of_improvement
from workbench.core.aim import sign_of
from workbench.core.seeds import JUDGES


def searching(trials: pd.DataFrame) -> pd.DataFrame:
    """Give the trials of the search: those that confirm others are no part of it."""
    return trials[~trials["confirms"].astype(bool)]


def up_to(trials: pd.DataFrame, phases: pd.DataFrame, most: int | None) -> pd.DataFrame:
    """Give the trials as they were after `most` phases, where they ran as many: finished; with none all they ran."""
    if most is None:
        return trials
    then = phases.loc[phases["phase"] == most - 1].set_index("trial")["score"]
    scores = trials["last_score"].mask(trials["phases"] > most, trials["trial"].map(then))
    ended = {name: trials[name].mask(trials["phases"] >= most, "finished") for name in ("state", "mode")}
    return trials.assign(phases=trials["phases"].clip(upper=most), last_score=scores, **ended)


def leader_of(decisions: pd.DataFrame) -> int | None:
    """Give the trial that the last reason to name a `leader` names: a scheduler's own choice; ``None`` without one."""
    named = (reason.get("leader") for reason in reversed(decisions["reason"].to_list()))
    return next((leader for leader in named if isinstance(leader, int)), None)


def claims(
    trials: pd.DataFrame,
    mode: str = "max",
    judged_by: str = "mean",
    leader: int | None = None,
) -> pd.DataFrame:
    """Rank the configurations by the scores on which the study chose them: the first is the one to take.

    Parameters
    ----------
    trials : DataFrame
        Of `Frames`; left out are trials that confirm others, and those that failed or that a person stopped, unless a
        configuration has no other. So are those that are under way or cut off where another has come to its end.
    mode : str
        ``max`` or ``min``.
    judged_by : str
        What joined the scores of a configuration's seeds: see `Seeded`.
    leader : int, optional
        A trial of the configuration that the scheduler would take, which knows more than last scores: see `leader_of`;
        or of one that has reached the study's target.

    Returns
    -------
    DataFrame
        The leader's first, then the best: candidate, trial (its first), phases (that its seeds ran), claimed (what
        their last scores come to), claimed_on (seeds).
        Those whose seeds ran further stand before others, for scores after few phases promise less. Of those that ran
        as far, those with fewer than half of the most seeds stand after others: one lucky seed outdoes a mean of many.
    """
    rows = claimed(trials, judged_by)
    rows = ranked(rows, mode, few=few_seeds(rows))
    led = trials.loc[trials["trial"] == leader, "candidate"]
    return rows.sort_values("candidate", key=lambda numbers: ~numbers.isin(led), kind="stable", ignore_index=True)


def claiming(trials: pd.DataFrame) -> pd.DataFrame:
    """Give the trials whose last scores `claims` counts."""
    chosen = searching(trials).dropna(subset=["last_score"])
    fell = (chosen["state"] == "failed") | (chosen["mode"] == "person")
    chosen = chosen[~fell | fell.groupby(chosen["candidate"]).transform("all")]
    over = chosen["state"].isin(["stopped", "finished", "failed"])  # a repetition on its way says little yet
    done = (chosen["state"] == "finished").groupby(chosen["candidate"]).transform("any")
    return chosen[over | ~done]


def claimed(trials: pd.DataFrame, judged_by: str = "mean") -> pd.DataFrame:
    """Give the rows of `claims` in the order in which the configurations were first tried."""
    rows = (
        claiming(trials)
        .groupby("candidate")
        .agg(
            trial=("trial", "min"),
            phases=("phases", "min"),
            claimed=("last_score", lambda scores: JUDGES[judged_by](scores.to_list())),
            claimed_on=("trial", "size"),
        )
    )
    return rows.reset_index()


def few_seeds(rows: pd.DataFrame) -> pd.Series:
    """Tell which claims of one study stand on fewer than half of the most seeds, of those that ran as far.

    Only claims are held to it, which the search chose by these very scores. Fresh seeds chose nothing: be they few,
    what they come to is no likelier too high than too low.
    """
    return 2 * rows["claimed_on"] < rows.groupby("phases")["claimed_on"].transform("max")


def ranked(
    rows: pd.DataFrame, mode: str = "max", score: str = "claimed", few: "pd.Series | bool" = False
) -> pd.DataFrame:
    """Put those that ran the furthest first, of them those of `few` seeds last, and then by a score, best first."""
    by_rank = rows.assign(few=few).sort_values(["phases", "few", score], ascending=[False, True, sign_of(mode) < 0])
    return by_rank.drop(columns="few").reset_index(drop=True)


def each_once(rows: pd.DataFrame, configs: pd.Series) -> pd.DataFrame:
    """Keep the first row of every configuration, of the one that stands beside each row.

    Where survivors run every rung anew, what is run again is another candidate with the same configuration.
    """
    return rows[~configs.map(lambda config: repr(sorted(config.items()))).duplicated()]


def confirmed(trials: pd.DataFrame, phases: pd.DataFrame, mode: str = "max", judged_by: str = "mean") -> pd.DataFrame:
    """Put the scores of fresh seeds beside those claimed.

    Parameters
    ----------
    trials, mode, judged_by
        As of `claims`.
    phases : DataFrame
        Of `Frames`.

    Returns
    -------
    DataFrame
        A row a confirmed configuration, the best by its fresh seeds first, be they few or many; those of fewer phases
        stand after others. The columns of `claims`, then confirmed (mean of the fresh seeds' scores after as many
        phases), low, high (its 95 % interval, Student's; NaN of one seed, and of equal scores), confirmed_on (seeds),
        beaten_by_first (probability that a run of the first row's is better than one of this row's; NaN in the first,
        and in those of fewer phases).
        Fresh seeds that failed or have not run as far as the claim are not counted; where all failed, the row stands
        last, with NaN for a mean. The first of several was chosen
        once more: its score is a little high, and outside of its interval in more than one case of twenty.

    References
    ----------
    Agarwal et al., NeurIPS 2021 (arXiv 2108.13264), for the probability; Eimer et al., ICML 2023, for seeds apart.
    """
    fresh = trials[trials["confirms"].astype(bool)]
    rows: list[dict[str, Any]] = []
    scores: dict[Any, Any] = {}
    if fresh.empty:
        return _ranked(rows, scores, mode)
    every = claims(trials, mode, judged_by)
    tried_again = every[every["candidate"].isin(fresh["candidate"])]  # of thousands a few
    for candidate, claim in tried_again.set_index("candidate", drop=False).T.to_dict().items():
        tried = fresh[fresh["candidate"] == candidate]
        runs = up_to(tried, phases, claim["phases"])
        runs = runs[runs["phases"] == claim["phases"]]
        if runs.empty and (tried.empty or not (tried["state"] == "failed").all()):
            continue
        last = scores[candidate] = runs["last_score"].to_numpy(float)
        mean, *limits = mean_of(last)
        low, high = (limit if math.isfinite(limit) else math.nan for limit in limits)
        estimate = {"confirmed": mean, "low": low, "high": high, "confirmed_on": len(last)}
        rows.append(claim | estimate)
    return _ranked(rows, scores, mode)


def deciding(claims: pd.DataFrame, confirmed: pd.DataFrame) -> pd.DataFrame:
    """Give the rows of `confirmed` that say which configuration to take: of as many phases as the first of `claims`.

    None before that one was tried, for fresh seeds of others say nothing of it; those of its own may all have failed.
    """
    first = claims.head(1)
    alike = confirmed[confirmed["phases"].isin(first["phases"])]
    tried = alike["candidate"].isin(first["candidate"]).any()
    return alike[alike["confirmed_on"] > 0] if tried else alike.head(0)


def _ranked(rows: list[dict[str, Any]], scores: dict[Any, Any], mode: str) -> pd.DataFrame:
    names = ["candidate", "trial", "phases", "claimed", "claimed_on", "confirmed", "low", "high", "confirmed_on"]
    whole = dict.fromkeys(("candidate", "trial", "phases", "claimed_on", "confirmed_on"), int)
    table = ranked(pd.DataFrame(rows, columns=names).astype(whole), mode, "confirmed")
    ordered = [sign_of(mode) * scores[candidate] for candidate in table["candidate"]]
    beaten = [probability_of_improvement(ordered[0], other) if other.size else math.nan for other in ordered]
    alike = (table["phases"] == table["phases"].max()) & (table.index > 0)
    return table.assign(beaten_by_first=pd.Series(beaten, dtype=float).where(alike))
