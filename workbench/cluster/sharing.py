"""Who may use which worker of a Dask cluster that several studies share, and how many workers they could use in all.

It lives in Dask's scheduler, the one place that all drivers speak to. A study asks again and again, says what it holds
and could use, and hears which workers are its own; adaptive scaling asks how many are wanted.
"""

import math
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

LEAVING = "workbench-leaving"  # the topic in which a worker says that it has been told to go

_GONE_S = 60.0  # a driver that has not asked for so long has no claim
_LITTLE = 1e-9
_MEMORY_S = 4 * 3600.0  # nobody makes up for more: where gangs fit badly, one may have had too much for days
_TURN_S = 60.0  # how long what does not divide stays with one study


@dataclass(slots=True)
class Claim:
    """What one study asks for.

    Attributes
    ----------
    weight : float
        Its share of the workers, against the others'.
    wanted : int
        Workers that it could use now.
    unit : int
        Workers that a slot of it needs.
    held : int
        Workers it has.
    owed : float
        Seconds of its share that it lacked (`lacking`); below 0 it had more. What it did not want counts for nothing.
    """

    weight: float = 1.0
    wanted: int = 0
    unit: int = 1
    held: int = 0
    owed: float = 0.0


def shares(n: int, claims: Mapping[str, Claim]) -> dict[str, float]:
    """Divide `n` workers by weight, none getting more than it wants while another wants more (max-min fairness)."""
    share = dict.fromkeys(claims, 0.0)
    left = float(n)
    for most in ({name: float(claim.wanted) for name, claim in claims.items()}, dict.fromkeys(claims, math.inf)):
        while left > _LITTLE and (takers := [name for name in claims if most[name] - share[name] > _LITTLE]):
            weights = sum(claims[name].weight for name in takers)
            step = min(left / weights, *((most[name] - share[name]) / claims[name].weight for name in takers))
            for name in takers:
                share[name] += step * claims[name].weight
            left -= step * weights
    return share  # what nobody wants is shared out as well


def deal(n: int, claims: Mapping[str, Claim]) -> dict[str, int]:
    """Give each study the whole slots of its share, and what is left slot by slot, those that are owed most first.

    What is left may hold no gang: so the first of those that have less than their share is given one more slot also
    where workers of it must come from studies that are owed less.
    """
    if len(claims) == 1:
        return dict.fromkeys(claims, n)
    share = shares(n, claims)
    dealt = {name: int(share[name] / claim.unit + _LITTLE) * claim.unit for name, claim in claims.items()}
    short = {name for name in claims if dealt[name] < min(share[name] - _LITTLE, claims[name].wanted)}
    in_turn = sorted(claims, key=lambda name: (name not in short, -claims[name].owed, name))

    def left() -> int:
        return n - sum(dealt.values())

    def takes(name: str) -> bool:
        return claims[name].wanted > dealt[name] and claims[name].unit <= left()

    for name in in_turn[: len(short)]:
        claim = claims[name]
        less = sorted((other for other in claims if claims[other].owed < claim.owed), key=lambda at: claims[at].owed)
        if claim.unit <= left() + sum(dealt[other] for other in less):
            for other in less:
                while dealt[other] and left() < claim.unit:
                    dealt[other] -= claims[other].unit
            dealt[name] += claim.unit
            break
    while any(map(takes, in_turn)):
        for name in filter(takes, in_turn):
            dealt[name] += claims[name].unit
    return dealt


def lacking(claims: Mapping[str, Claim]) -> dict[str, float]:
    """Tell which part of its share each has not: 1 if it has no slot at all, below 0 if it has more than its share.

    Divided are the workers that are in use, in whole slots: what nobody can use is owed to none. Nobody lacks more than
    who has nothing, which so comes to be owed most, however badly the others' gangs fit.
    """
    in_use = {name: min(claim.held // claim.unit * claim.unit, claim.wanted) for name, claim in claims.items()}
    share = shares(sum(in_use.values()), claims)
    return {name: 1.0 - in_use[name] / share[name] if share[name] else 0.0 for name in claims}


@dataclass(slots=True)
class _Driver(Claim):
    study: str = ""
    seen: float = 0.0
    busy: set[str] = field(default_factory=set)
    stuck: bool = False


class Sharing(SchedulerPlugin):  # type: ignore[misc]  # Dask has no types
    """The book of who has which worker."""

    name, idempotent = "workbench-sharing", True

    def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._drivers: dict[str, _Driver] = {}
        self._holder: dict[str, str] = {}  # address → driver
        self._lives = {
            address: ws.server_id for address, ws in scheduler.workers.items()
        }  # an address may be used again
        self._left: deque[str] = deque(maxlen=10_000)  # lives of workers that have said so, or were told to go
        self._counted = self._turned = time.monotonic()
        self._turn: dict[str, float] = {}  # what each was owed when the turn began
        scheduler.handlers["workbench_workers"] = self.workers
        scheduler.handlers["workbench_driver"] = self.driver
        self._target = scheduler.adaptive_target
        scheduler.adaptive_target = scheduler.handlers["adaptive_target"] = self.adaptive_target

    def workers(
        self,
        study: str,
        driver: str,
        weight: float,
        wanted: int,
        unit: int,
        held: Mapping[str, str],
        busy: Collection[str],
        sending: Collection[str] = (),
        stuck: bool = False,
    ) -> dict[str, Any]:
        """Hear what a study holds and could use; `driver` is the one that speaks for it, and the only one from now on.

        What it has are the addresses of its slots, each with the life of the worker that it knows there: another may be
        there by now. What it was given and made no slot of is dealt anew. `busy` are addresses, `sending` are lives; it
        is `stuck` while it can only wait for more workers, and so gives back only what is another's due (`want`).

        Returns
        -------
        dict
            ``workers``: those that it may use, address → name, host, life; ``surplus``: how many slots it should give
            back, as soon as no trial is in a phase there; ``left``: lives it held, or that are ``sending`` its
            checkpoints, that had said that they go; ``gone``: those that were sending and are not there; ``taken``:
            lives it held that are another study's by now; ``others``: how many workers it does not have; ``to_come``:
            how many of them may be its own soon, as studies have them that are not stuck and may give some back, or
            nobody has them and they make a slot (`DaskExecutor.want`).
        """
        self._count()
        for other in [name for name, one in self._drivers.items() if one.study == study and name != driver]:
            self.leave(other)
        mine = self._drivers.setdefault(driver, _Driver(study=study))
        mine.weight, mine.wanted, mine.unit, mine.busy, mine.seen = weight, wanted, unit, set(busy), time.monotonic()
        mine.stuck = stuck
        self._note_held(driver, held)
        self._forget()
        known, claims = self._scheduler.workers, self._claims()
        running = [address for address, ws in known.items() if ws.status.name == "running"]
        dealt = deal(len(running), claims)
        free = [address for address in running if address not in self._holder]
        others = {name: claim.held for name, claim in claims.items() if name != driver}
        short = {name: dealt[name] - claim.held for name, claim in claims.items() if dealt[name] > claim.held}
        needs = {name: max(claims[name].wanted - held_there, 0) for name, held_there in others.items() if name in short}
        elsewhere = sum(min(short[name], need) for name, need in needs.items())
        given, n_left = free[: short.get(driver, 0)], max(len(free) - short.get(driver, 0), 0)
        self._holder.update(dict.fromkeys(given, driver))
        beyond, missing = claims[driver].held - dealt[driver], elsewhere - len(free)
        return {
            "workers": {
                address: {"name": ws.name, "host": ws.host, "life": ws.server_id}
                for address, ws in known.items()
                if self._holder.get(address) == driver
            },
            "surplus": max(min(beyond // unit, -(-missing // unit)), 0),
            "left": [life for life in {*held.values(), *sending} if life in self._left],
            "gone": [*{*sending} - {ws.server_id for ws in known.values()}],
            "taken": [life for at, life in held.items() if self._is_anothers(at, life, driver)],
            "others": sum(others.values()) + n_left,
            "to_come": sum(others[name] for name in others if not self._drivers[name].stuck) + n_left // unit * unit,
        }

    def _is_anothers(self, address: str, life: str, driver: str) -> bool:
        ws = self._scheduler.workers.get(address)
        return ws is not None and ws.server_id == life and self._holder.get(address) not in (None, driver)

    def driver(self, study: str) -> str | None:
        """Name the driver that speaks for a study, the last that has; ``None`` if there is none."""
        return next((name for name, one in self._drivers.items() if one.study == study), None)

    def leave(self, driver: str) -> None:
        """A study is over, or its driver has gone."""
        self._drivers.pop(driver, None)
        self._holder = {address: holder for address, holder in self._holder.items() if holder != driver}

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        for driver in [name for name in self._drivers if client.startswith(f"Client-{name}-")]:
            self.leave(driver)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        self._lives[worker] = scheduler.workers[worker].server_id

    def remove_worker(self, scheduler: Scheduler, worker: str, **about: Any) -> None:
        self._lives.pop(worker, None)  # Dask has logged before that it is removed

    def log_event(self, topic: str, msg: Any) -> None:
        if topic == LEAVING:
            self._left.append(msg["life"])
        elif topic == "all" and msg.get("action") == "remove-worker" and msg.get("expected"):
            self._left.append(self._lives.get(msg["worker"], ""))

    def adaptive_target(self, target_duration: float | None = None) -> int:
        """Say how many workers are wanted: what Dask makes of its tasks, or what the studies could use."""
        self._forget()
        n_busy = sum(bool(ws.processing) for ws in self._scheduler.workers.values())
        if not self._drivers:
            return int(self._target(target_duration))
        return max(n_busy, sum(claim.wanted for claim in self._drivers.values()))

    def valid_workers_downscaling(self, scheduler: Scheduler, workers: list[Any]) -> list[Any]:
        """Say which workers may be closed: those without a trial."""
        busy = set().union(*(claim.busy for claim in self._drivers.values()))
        return [ws for ws in workers if ws.address not in busy and not ws.processing]

    def _note_held(self, driver: str, held: Collection[str]) -> None:
        """Write down which addresses a driver has, and that all others are free that it had or nobody is at."""
        known = self._scheduler.workers
        for address, holder in list(self._holder.items()):
            if address not in known or (holder == driver and address not in held):
                del self._holder[address]
        for address in held:
            if address in known:
                self._holder.setdefault(address, driver)

    def _claims(self) -> dict[str, Claim]:
        """Give what each claims; of a gang that the cluster is too small for that is nothing, now."""
        n = len(self._scheduler.workers)
        for name, claim in self._drivers.items():
            claim.held = sum(holder == name for holder in self._holder.values())
        return {
            name: Claim(
                claim.weight,
                claim.wanted if claim.unit <= n else 0,
                claim.unit,
                claim.held,
                self._turn.get(name, claim.owed),
            )
            for name, claim in self._drivers.items()
        }

    def _count(self) -> None:
        """Write down what each had since the last time, against its share."""
        now = time.monotonic()
        for name, part in lacking(self._claims()).items():
            self._drivers[name].owed += part * (now - self._counted)
        most = max((claim.owed for claim in self._drivers.values()), default=0.0)
        for claim in self._drivers.values():
            claim.owed = max(claim.owed, most - _MEMORY_S)
        self._counted = now
        if now - self._turned > _TURN_S or self._turn.keys() != self._drivers.keys():
            self._turned, self._turn = now, {name: claim.owed for name, claim in self._drivers.items()}

    def _forget(self) -> None:
        for name, claim in list(self._drivers.items()):
            if time.monotonic() - claim.seen > _GONE_S:
                self.leave(name)
