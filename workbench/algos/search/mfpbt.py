"""MF-PBT: sub-populations that evolve at several frequencies (Doulazmi et al., 2025, arXiv 2506.03225)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.algos.search.pbt import PBT, Member
from workbench.core.checks import COUNT, check_each
from workbench.core.errors import InvalidInput
from workbench.core.showing import so_many


@dataclass
class MFPBT(PBT):
    """PBT in several sub-populations, each of which copies and changes after every so many phases.

    PBT is greedy: what it copies is what has improved most since the last time. Members that evolve seldom are judged
    by where hyperparameters lead in the long run, and are there when the greedy ones have run into a wall.

    A member that loses in its own sub-population copies the best member of the others if that one scores higher than
    whom it would have copied. So does one that has lost its weights or its score, where none of its own has any to
    give. From one that evolves as seldom as itself or more so it takes weights and
    hyperparameters, from one that evolves more often the weights alone: what was best in the short run is not imposed
    on those that look further. That is the paper's asymmetric migration as far as its idea goes; its exact draws are
    our choice. With a single interval of 1 this is PBT.

    Parameters
    ----------
    searcher, population, n_phases, …
        As `PBT`'s.
    intervals : sequence of int
        Phases between two evolutions, one entry a sub-population; members belong to them in turn. Members whose
        interval is `n_phases` or more never evolve: the default, the paper's, is for studies of more than 50 phases.
    """

    intervals: Sequence[int] = (1, 10, 25, 50)

    def __post_init__(self) -> None:
        check_each(self, COUNT, "intervals")
        if not self.intervals:
            raise InvalidInput("MFPBT needs one or more intervals, got none: try (1, 2, 5)")
        super().__post_init__()
        if len(self._members) < 2 * len(self.intervals):
            raise InvalidInput(
                f"MFPBT with {so_many(len(self.intervals), 'interval')} needs {2 * len(self.intervals)} members or "
                f"more, two in each sub-population, got {len(self._members)}"
            )

    @property
    def moves_weights(self) -> bool:
        """As `PBT`'s; and where members evolve more and less often, the weights alone of the former are copied."""
        return super().moves_weights or (self.exploit != "none" and len(set(self.intervals)) > 1)

    def _interval(self, member: Member) -> int:
        return self.intervals[member.index % len(self.intervals)]

    def _rivals(self, member: Member) -> list[Member]:
        n = len(self.intervals)
        return [other for other in self._members if other.index % n == member.index % n]

    def _ready(self, member: Member) -> bool:
        return super()._ready(member) and member.phase % self._interval(member) == 0

    def _donor(self, member: Member) -> tuple[Member | None, dict[str, Any]]:
        donor, why = super()._donor(member)
        if donor is None:
            return None, why
        own = self._rivals(member)
        others = [m for m in self._members if self._measured(m) and m not in own]
        best = max(others, key=lambda m: m.scores[-1], default=donor)
        of_use = self.copy_weights or self._takes_config(member, best)  # else nothing of the other's would be taken
        if of_use and best.scores[-1] > donor.scores[-1]:
            donor = best
        return donor, why if donor in own else {**why, "interval": self._interval(donor)}

    def _takes_config(self, member: Member, donor: Member) -> bool:
        return super()._takes_config(member, donor) and self._interval(donor) >= self._interval(member)

    @staticmethod
    def explain(reason: Mapping[str, Any]) -> str:
        """Put a reason into words, PBT's, and where a migrant comes from.

        >>> MFPBT.explain({"mode": "exploited", "place": 5, "reported": 5, "member": 3, "donor": 7, "interval": 10})
        'exploited: member 3, place 5 of 5, copies trial 7, of those that evolve every 10 phases'
        """
        words, every = PBT.explain(reason), reason.get("interval")
        return words if every is None else f"{words}, of those that evolve every {so_many(every, 'phase')}"
