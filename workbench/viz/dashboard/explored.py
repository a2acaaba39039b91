"""Trials that are explored: one filter and one selection for all views, which Python reads and sets too."""

from collections.abc import Iterable
from typing import Any

import traitlets

from workbench.viz.dashboard.live import Live


class TrialNumbers(traitlets.List):  # type: ignore[type-arg]
    """A list of trial numbers; one number and ``None`` are taken for a list of one and of none."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Check what is set."""
        if value is None and self.allow_none:
            return None
        several = [] if value is None else [*value] if isinstance(value, Iterable) else [value]
        return super().validate(obj, several)


class Explored(Live):
    """A widget of trials; `Dashboard` says what its traits mean."""

    selected = TrialNumbers(traitlets.Int()).tag(sync=True)
    filter = traitlets.Unicode("").tag(sync=True)
    visible = TrialNumbers(traitlets.Int(), default_value=None, allow_none=True).tag(sync=True)

    _from_page = False  # whether a page sets a trait right now

    @traitlets.observe("visible")
    def _made_visible(self, change: Any) -> None:
        """Set from Python, it becomes the filter; what a page says of its own filter does not."""
        if not self._from_page:
            self.filter = "" if change["new"] is None else f"trial:{listed(change['new'])}"

    def set_state(self, sync_data: Any) -> None:
        """Take what a page sets."""
        self._from_page = True
        try:
            super().set_state(sync_data)
        finally:
            self._from_page = False


def listed(numbers: Iterable[int]) -> str:
    """Write trial numbers with their runs short, as the filter does.

    >>> listed([3, 9, 5, 6, 7])
    '3,5-7,9'
    """
    runs: list[list[int]] = []
    for n in sorted(set(numbers)):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
