"""How much of the slots' time ran trials: the paper's cluster occupancy, from spans and slots."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from workbench.core.nodes import nodes_of

Seconds = npt.NDArray[np.float64]

KINDS = ["ran", "lost", "held"]
KIND_OF = {"ended": "ran", "running": "ran", "lost": "lost", "stopped": "lost", "held": "held"}


class Occupancy(NamedTuple):
    """Where the slots' time went, in slot-seconds (one slot alive for one second).

    Attributes
    ----------
    share : float
        (ran + lost) / alive, 0 to 1; NaN before any slot has lived.
    alive : float
        Slot-seconds the cluster offered: the sum of the slots' lives.
    ran : float
        Of these, spent on phases that ended or still run.
    lost : float
        Spent on attempts that crashed, hung, were cut off as the study or its driver ended, or were stopped by a
        person. They count as occupied, since no other trial could have had the slot; they bought nothing, so they are
        also told apart.
    held : float
        Given to a trial that waited at a barrier: not occupied.
    idle : float
        Given to nobody.
    """

    share: float
    alive: float
    ran: float
    lost: float
    held: float
    idle: float


def occupancy(spans: pd.DataFrame, slots: pd.DataFrame, until_s: float) -> Occupancy:
    """Measure occupancy over a study's whole time.

    Parameters
    ----------
    spans, slots : DataFrame
        As in `workbench.knowledge.Frames`. What has not ended yet counts up to `until_s`; the part of a span outside
        its slot's life (a death noticed late) does not count.
    until_s : float
        The study's clock now, seconds (`Frames.wall_s`).
    """
    lives = slot_lives(slots, until_s)
    used = _cut(spans, lives, until_s)
    alive = float((lives["to_s"] - lives["from_s"]).sum())
    seconds, kinds = (used["to_s"] - used["from_s"]).to_numpy(), used["kind"].to_numpy()
    ran, lost, held = (float(seconds[kinds == kind].sum()) for kind in KINDS)
    share = (ran + lost) / alive if alive > 0 else float("nan")
    return Occupancy(share, alive, ran, lost, held, max(0.0, alive - ran - lost - held))


def occupancy_over_time(spans: pd.DataFrame, slots: pd.DataFrame, until_s: float, bins: int = 100) -> pd.DataFrame:
    """Measure occupancy in equal stretches of the study's time, exactly (no sampling).

    Returns
    -------
    DataFrame
        One row a stretch: from_s, to_s (seconds); alive, ran, lost, held, idle (mean number of slots over the
        stretch); share ((ran + lost) / alive, NaN where no slot lived). Empty when `until_s` is 0.
    """
    columns = ["from_s", "to_s", "alive", *KINDS, "idle", "share"]
    if until_s <= 0:
        return pd.DataFrame(columns=columns, dtype=float)
    edges = np.linspace(0.0, until_s, bins + 1)
    used = slot_time(spans, slots, until_s)
    lives = slot_lives(slots, until_s)
    table = {"from_s": edges[:-1], "to_s": edges[1:], "alive": mean_active(lives["from_s"], lives["to_s"], edges)}
    for kind in KINDS:
        spent = used[used["kind"] == kind]
        table[kind] = mean_active(spent["from_s"], spent["to_s"], edges)
    frame = pd.DataFrame(table)
    frame["idle"] = (frame["alive"] - frame[KINDS].sum(axis=1)).clip(lower=0.0)
    frame["share"] = ((frame["ran"] + frame["lost"]) / frame["alive"]).where(frame["alive"] > 0)
    return frame[columns]


def node_seconds(slots: pd.DataFrame, until_s: float, at_s: npt.ArrayLike) -> Seconds:
    """Reckon what a study has cost up to each instant: the seconds its nodes were there, however many slots they have.

    The slot of a gang counts as all of its nodes.

    Parameters
    ----------
    slots : DataFrame
        slot, node, joined_s, lost_s, as in `workbench.knowledge.Frames`.
    until_s : float
        The study's clock now.
    at_s : array of float
        Instants on it.
    """
    instants = np.asarray(at_s, float)
    total = np.zeros_like(instants)
    for _, lives in slots.assign(node=slots["node"].map(nodes_of)).explode("node").groupby("node"):
        covered: float = -np.inf
        over = lives["lost_s"].astype(float).fillna(until_s).to_numpy()
        for begun, ended in sorted(zip(lives["joined_s"].tolist(), over.tolist(), strict=True)):
            start = max(begun, covered)
            if ended > start:
                total += np.clip(instants - start, 0.0, ended - start)
                covered = ended
    return total


def slot_lives(slots: pd.DataFrame, until_s: float) -> pd.DataFrame:
    """Give each stretch of a slot's life as slot, from_s, to_s (seconds); a living slot's ends at `until_s`."""
    return pd.DataFrame(
        {
            "slot": pd.to_numeric(slots["slot"]),
            "from_s": slots["joined_s"].astype(float).clip(upper=until_s),
            "to_s": slots["lost_s"].astype(float).fillna(until_s).clip(upper=until_s),
        }
    )


def slot_time(spans: pd.DataFrame, slots: pd.DataFrame, until_s: float) -> pd.DataFrame:
    """Cut the spans to their slots' lives.

    Returns
    -------
    DataFrame
        One row a span and life that overlap: slot, trial, phase, kind (ran, lost or held), from_s, to_s (seconds).
    """
    return _cut(spans, slot_lives(slots, until_s), until_s)


def _cut(spans: pd.DataFrame, lives: pd.DataFrame, until_s: float) -> pd.DataFrame:
    stretches = pd.DataFrame(
        {
            "slot": pd.to_numeric(spans["slot"]),
            "trial": spans["trial"],
            "phase": spans["phase"],
            "kind": spans["outcome"].map(KIND_OF),
            "begun_s": spans["started_s"].astype(float),
            "over_s": spans["ended_s"].astype(float).fillna(until_s),
        }
    )
    both = stretches.merge(lives, on="slot")
    both["from_s"] = np.maximum(both["from_s"], both["begun_s"])
    both["to_s"] = np.minimum(both["to_s"], both["over_s"])
    return both.loc[both["to_s"] > both["from_s"], ["slot", "trial", "phase", "kind", "from_s", "to_s"]]


def mean_active(from_s: npt.ArrayLike, to_s: npt.ArrayLike, edges_s: Seconds) -> Seconds:
    """Mean number of intervals, [n] beginnings and ends, that cover each stretch between `edges_s`, [m + 1] → [m]."""
    area = _area_before(np.asarray(from_s, float), edges_s) - _area_before(np.asarray(to_s, float), edges_s)
    covered: Seconds = np.diff(area) / np.diff(edges_s)
    return covered


def _area_before(times: Seconds, edges: Seconds) -> Seconds:
    """Σ max(0, edge - time) over times [n], for every edge [m] → [m], in O((n + m) log n)."""
    ordered = np.sort(times)
    count = np.searchsorted(ordered, edges, side="right")
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    area: Seconds = count * edges - total[count]
    return area
