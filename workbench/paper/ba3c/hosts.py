"""Distributed BA3C over hosts with narrow links: what ranks and parameter servers make of a network (Figs 7, 8).

The hosts are virtual, and share this machine's cores. So ranks sleep for as long as a core takes for a batch of 32 data
points, and play two: what a batch costs is made up, what gradients and weights cost on their way is not.
"""

from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from workbench.algos.rl.ba3c.local_gang import LocalGang
from workbench.algos.rl.ba3c.rank import BA3CTrial
from workbench.core.budget import Budget
from workbench.core.protocols import Config, Trainable
from workbench.core.showing import so_many
from workbench.paper.ba3c.measured import Sleeping
from workbench.paper.ba3c.published import FIG_6
from workbench.paper.ba3c.scaling import ScalingModel
from workbench.paper.ba3c.virtual_hosts import Host, hosts
from workbench.paper.experiment import Rows, trained

ALL, SERVERS = "all-reduce", "servers"
LATENCY_S = 5e-5  # of a message, in the model


@dataclass(frozen=True)
class Placed(Sleeping):
    """Sleeping ranks, each on a host of its own."""

    hosts: tuple[Host, ...] = ()

    def __call__(self, config: Config, seed: int) -> Trainable:
        """Build the gang; this thread goes to the host of rank 0."""
        if self.n_ranks == 1:
            return self.rank(config, seed, 0)
        return LocalGang(self, config, seed, self.hosts[0].address)

    def rank(self, config: Any, seed: int, rank: int) -> BA3CTrial:
        """Build a rank, on its host."""
        self.hosts[rank].enter()
        return super().rank(config, seed, rank)


@dataclass(frozen=True)
class Links:
    """Measurements of `updates` each, in turn, so many times.

    Attributes
    ----------
    mbit_per_s : tuple of float
        What a host's link carries, each way.
    ranks : tuple of int
        Numbers of ranks that all wait for all, by an all-reduce.
    servers : tuple of int
        Numbers of servers of the most ranks, of which all but one are awaited, as where servers are used here.
    sleep_s : float
        For each batch.
    """

    updates: int = 12
    repeats: int = 4
    mbit_per_s: tuple[float, ...] = (100, 1000)
    ranks: tuple[int, ...] = (1, 2, 4)
    servers: tuple[int, ...] = (1, 2, 4)
    sleep_s: float = 0.3
    network: str = "ba3c-128"


def links(settings: Links) -> Rows:
    """Measure the seconds an update takes.

    Returns
    -------
    rows
        One a measurement: mbit_per_s, way, n_ranks, n_awaited, n_servers, repeat, update_s, batches_per_s (that updates
        were made of).

    Raises
    ------
    WorkbenchError
        This is not root on Linux, or iproute2 is missing.
    """
    most = max(settings.ranks)
    variants = [(ALL, n, n, 0) for n in settings.ranks] + [(SERVERS, most, most - 1, n) for n in settings.servers]
    rows = []
    for mbit_per_s in settings.mbit_per_s:
        with hosts([f"n{k}" for k in range(most)], mbit_per_s) as placed:
            rows += [
                {"mbit_per_s": mbit_per_s, "way": way, "n_ranks": n, "n_awaited": k, "n_servers": servers}
                | {"repeat": repeat, "update_s": round(took, 4), "batches_per_s": round(k / took, 3)}
                for repeat in range(settings.repeats)
                for way, n, k, servers in variants
                for took in [update_s(settings, placed, n, k, servers)]
            ]
    return rows


def update_s(settings: Links, placed: list[Host], n_ranks: int, n_awaited: int, n_servers: int) -> float:
    """Measure the seconds an update takes, once the ranks are up and have met."""
    factory = Placed(
        "Pong",
        phase=Budget(updates=settings.updates),
        n_ranks=n_ranks,
        n_awaited=n_awaited if n_awaited < n_ranks else None,
        n_servers=max(1, n_servers),
        network=settings.network,
        n_agents=2,
        batch=2,
        t_max=1,
        min_games=1,
        max_episode_frames=40,  # a phase goes on until a game has ended
        noop_max=1,
        emulator_threads=1,
        evaluate_every=None,
        device="cpu",
        sleep_s=settings.sleep_s,
        hosts=tuple(placed),
    )
    with placed[0].entered():
        first, second = trained(factory, {}, 0, 2)
    return float((second["seconds"] - first["seconds"]) / (second["updates"] - first["updates"]))


def link_rates(rows: pd.DataFrame) -> pd.DataFrame:
    """Put batches a second of all measurements side by side, for `figures.estimates`, and what `ScalingModel` expects.

    Parameters
    ----------
    rows : DataFrame
        The recording ``ba3c-links``.

    Returns
    -------
    DataFrame
        One row a link, way and number of ranks or servers: group, name, value (the median), low and high (the least and
        the most), modelled (of such a link, from what one rank took).
    """
    found = []
    for at, part in rows.groupby(["mbit_per_s", "way", "n_ranks", "n_awaited", "n_servers"], sort=False):
        mbit_per_s, way, n_ranks, n_awaited, n_servers = cast(tuple[Any, ...], at)
        alone = rows[(rows["mbit_per_s"] == mbit_per_s) & (rows["n_ranks"] == 1)]
        model = ScalingModel(alone["update_s"].tolist(), 1, FIG_6[128], LATENCY_S, mbit_per_s * 1e6 / 8)
        speed = part["batches_per_s"]
        found.append(
            {
                "group": f"{mbit_per_s:g} Mbit/s",
                "name": so_many(n_ranks, "rank") + (f", {so_many(n_servers, 'server')}" if way == SERVERS else ""),
                "value": speed.median(),
                "low": speed.min(),
                "high": speed.max(),
                "modelled": model.points_per_s(n_ranks, n_awaited, way, max(1, n_servers)),
            }
        )
    return pd.DataFrame(found)
