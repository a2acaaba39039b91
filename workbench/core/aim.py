"""What a study is after, and what ends it before its scheduler is done; kept with every start and resume."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from workbench.core.checks import FINITE, POSITIVE, is_number
from workbench.core.domains import scalar
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Decision, Report

MODES = ("max", "min")


def sign_of(mode: str, name: str = "mode") -> int:
    """Give 1 for ``max``, where higher is better, and -1 for ``min``; the setting `name` has no other words.

    Raises
    ------
    InvalidInput
        It is another word.
    """
    if mode not in MODES:
        raise InvalidInput(f"{name} is one of {', '.join(MODES)}, got {mode!r}")
    return 1 if mode == "max" else -1


@dataclass(frozen=True)
class Aim:
    """What a study is after.

    Schedulers maximise, whatever is asked: `inward` turns the reports they hear, `outward` what they say of scores. All
    else, the log, frames and figures among it, has scores as the trainable gave them.

    Attributes
    ----------
    mode : str
        Of the score: ``max`` or ``min``.
    target_score : float or None
        The study ends once a phase ends with a score as good.
    max_hours : float or None
        The study ends once it has been driven so long, all drivers together, without the time that `confirm` took.
    second : str or None
        A metric that trials return beside the score, held against it: see `workbench.analysis.front`.
    second_mode : str
        Of that metric.
    """

    mode: str = "max"
    target_score: float | None = None
    max_hours: float | None = None
    second: str | None = None
    second_mode: str = "max"

    def __post_init__(self) -> None:
        for name in ("target_score", "max_hours"):
            object.__setattr__(self, name, scalar(getattr(self, name)))
        for name in ("mode", "second_mode"):
            sign_of(getattr(self, name), name)
        if self.target_score is not None and not FINITE.fits(self.target_score):
            raise InvalidInput(f"target_score is a finite number, got {self.target_score!r}")
        if self.max_hours is not None and not POSITIVE.fits(self.max_hours):
            raise InvalidInput(f"the hours of a study (max_hours) are a number above 0 or None, got {self.max_hours!r}")
        if self.second is not None and (not isinstance(self.second, str) or self.second in ("", "score")):
            raise InvalidInput(f"second names a metric that trials return beside score, got {self.second!r}")

    @property
    def sign(self) -> int:
        """1 if a higher score is better, -1 if a lower one is."""
        return sign_of(self.mode)

    def better(self, score: float, than: float | None) -> bool:
        """Tell whether a score improves on another, or on none."""
        if than is None or than != than:  # NaN
            return True
        return self.sign * score > self.sign * than

    def reached(self, best: float | None) -> bool:
        """Tell whether a best score is as good as the target, if there is one."""
        return self.target_score is not None and best is not None and not self.better(self.target_score, best)

    def why_over(self, best: float | None, searching_s: float) -> str | None:
        """Say why a study is over with such a best score, `Ledger.searching_s` seconds on; ``None`` if it is not."""
        if self.reached(best):
            return f"the target score, {self.target_score:g}, is reached: {best:g}"
        if self.max_hours is not None and searching_s >= 3600 * self.max_hours:
            return f"its time, {self.max_hours:g} h, is up"
        return None

    def left_s(self, searching_s: float) -> float:
        """Give the seconds until the study's time is up, of which so many have passed; infinite without a limit."""
        return math.inf if self.max_hours is None else max(0.0, 3600 * self.max_hours - searching_s)

    def inward(self, report: Report) -> Report:
        """Turn a report into what a scheduler hears: a higher score is better."""
        if self.mode == "max":
            return report
        return replace(report, score=-report.score, returns=tuple(-value for value in report.returns))

    def outward(self, decision: Decision, scores: tuple[str, ...]) -> Decision:
        """Turn a scheduler's reason back: `scores` names its entries that are scores, if there are any."""
        if self.mode == "max":
            return decision
        turned = {key: _turned(value) for key in scores if (value := decision.reason.get(key)) is not None}
        return replace(decision, reason={**decision.reason, **turned, "minimised": True}) if turned else decision

    def to_json(self) -> dict[str, Any]:
        """Describe what is not as usual, as ``aim`` in the log where a driver begins; `read_back` gives it again."""
        return {key: value for key, value in asdict(self).items() if value != getattr(_USUAL, key)}

    def kept(self) -> dict[str, Any]:
        """Give what may not change when a study is resumed: it may get a second objective where it has none."""
        names = ("mode",) if self.second is None else ("mode", "second", "second_mode")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        words = ["score minimised"] if self.mode == "min" else []
        words += [] if self.second is None else [f"second objective {self.second}, {self.second_mode}imised"]
        words += [] if self.target_score is None else [f"until a score of {self.target_score:g}"]
        return "; ".join(words + ([] if self.max_hours is None else [f"at most {self.max_hours:g} h"]))


def check_one_mode(aims: Mapping[str, Aim]) -> None:
    """Refuse to compare studies, given by name, of which one minimises and another maximises."""
    low, high = ([name for name, aim in aims.items() if aim.mode == mode] for mode in ("min", "max"))
    if low and high:
        raise InvalidInput(
            f"studies that minimise ({', '.join(low)}) cannot stand beside studies that maximise ({', '.join(high)}): "
            "compare those of one kind"
        )


def _turned(told: Any) -> Any:
    """Negate a score, or each of a list; a user's scheduler may have something else in a score's place."""
    if isinstance(told, (list, tuple)):
        return [_turned(value) for value in told]
    return -told if is_number(told) else told


_USUAL = Aim()
