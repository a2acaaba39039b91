"""A growing collection of scores that tells where a new one ranks, quickly however many there are."""

from bisect import bisect_left, insort

_LONGEST = 1000


class Ranking:
    """Scores in sorted blocks: adding one moves a block's numbers, not all of them."""

    def __init__(self) -> None:
        self._blocks: list[list[float]] = [[]]
        self._ends: list[float] = []  # the largest of each block but the last
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, score: float) -> int:
        """Add a score; return how many of the earlier ones lie strictly below it."""
        at = bisect_left(self._ends, score)
        block = self._blocks[at]
        within = bisect_left(block, score)
        insort(block, score)
        self._n += 1
        below = within + sum(map(len, self._blocks[:at]))
        if len(block) > _LONGEST:
            half = len(block) // 2
            self._blocks[at : at + 1] = [block[:half], block[half:]]
            self._ends.insert(at, block[half - 1])
        return below
