"""A measurement that tells its process or ends badly; it imports little, for a fresh process has to import it."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Ending:
    """How a measurement ends."""

    how: str = "well"


def measured(given: Ending) -> list[dict[str, int]]:
    """Give one row with the process it ran in, or end it."""
    if given.how == "killed":
        os._exit(3)
    if given.how == "error":
        raise FloatingPointError("the loss is not finite")
    return [{"process": os.getpid()}]
