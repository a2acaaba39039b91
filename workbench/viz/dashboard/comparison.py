"""Several studies in one view: their trials in one table, one filter and one selection over all of them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import traitlets

from workbench import analysis
from workbench.core.aim import check_one_mode
from workbench.core.errors import InvalidInput
from workbench.core.garbage import uncollected
from workbench.core.ledger import standing_in
from workbench.knowledge.frames import SLOTS
from workbench.viz.dashboard.board import Board, Message, board_of
from workbench.viz.dashboard.estimator import Estimator, scored
from workbench.viz.dashboard.explored import Explored
from workbench.viz.dashboard.feed import Feed
from workbench.viz.dashboard.static import studies_table
from workbench.viz.figures import theme

APART = 100_000
"""Trial 12 of the third study has the number 200012: numbers of trials are float32 on their way to the page."""

_POINTS = 20_000  # of all curves together
_EVERY_S = 2.0


class Comparison(Explored):
    """Two or more studies of a knowledge base side by side, while they run and after.

    Scores of studies are comparable only if their trials learn the same thing, which is for whoever compares them to
    know.

    Parameters
    ----------
    db : path
        The knowledge base.
    *names : str
        The studies.
    refresh_s : float
        Seconds between two looks.

    Attributes
    ----------
    selected, filter, visible
        As of `Dashboard`, over all the studies' trials: trial 12 of the third study has the number 200012, and
        ``study=monday`` leaves one study's (``study_=monday`` where a hyperparameter is called ``study``).

    Raises
    ------
    InvalidInput
        Fewer than two names, or studies of which one minimises and another maximises.
    """

    _kind = traitlets.Unicode("comparison").tag(sync=True)

    def __init__(self, db: str | Path, *names: str, refresh_s: float = _EVERY_S) -> None:
        if len(set(names)) < 2:
            raise InvalidInput(f"a comparison needs two studies or more, got {', '.join(names) or 'none'}")
        self._studies: dict[str, tuple[Feed, Board]] = {}
        self._estimators: dict[str, Estimator] = {}
        with ExitStack() as opened:
            for name in dict.fromkeys(names):
                opened.callback((feed := Feed(db, name)).close)
                opened.callback((estimator := Estimator()).close)
                self._studies[name], self._estimators[name] = (feed, board_of(name, feed)), estimator
            with uncollected():
                self._read()
            self._take_as_sent()
            check_one_mode({name: board.ledger.aim for name, (_, board) in self._studies.items()})
            self._opened = opened.pop_all()
        super().__init__(", ".join(board.title for _, board in self._studies.values()), refresh_s)

    # -- what it shows -------------------------------------------------------------------------------------------

    def _take(self) -> None:
        self._read()
        self._asked |= any(board.stale for _, board in self._studies.values())  # small enough to be sent whole

    def _read(self) -> None:
        """Read what is new of every study."""
        for name, (feed, board) in self._studies.items():
            more = True
            while more:
                news = feed.news()
                board.take(news)
                more = news.more
            board.learn(driven=feed.driven)
            self._estimators[name].look(board.ledger, board.frames)
            board.learn(importance=self._estimators[name].answers)

    def _take_as_sent(self) -> None:
        for _, board in self._studies.values():
            board.take_as_sent()

    def _snapshot(self) -> Iterator[Message]:
        boards = [board for _, board in self._studies.values()]
        self._take_as_sent()
        states = [board.state() for board in boards]
        meta = [board.meta() for board in boards]
        names, column = dict.fromkeys(name for known in meta for name in known["hyperparameters"]), "study"
        while column in names:
            column += "_"
        curves = [board.reported.curves.all(_POINTS // len(boards)) for board in boards]
        for k, points in enumerate(curves):
            points[:, 0] += k * APART
        trials = [
            {**trial, "label": str(trial["trial"])}
            | {of: None if trial[of] is None else k * APART + trial[of] for of in ("trial", "parent", "candidate")}
            | {"state": standing_in(now["state"], trial["state"], in_phase=trial["in_phase"]), "study": k}
            | {"config": {column: board.name, **trial["config"]}}
            for k, (board, now) in enumerate(zip(boards, states, strict=True))
            for trial in board.rows.all()
        ]
        yield (
            {
                "meta": {**meta[0], "name": self._title, "hyperparameters": [column, *names]},
                "state": "ended" if self._is_over() else "running",
                "at_s": max(now["at_s"] for now in states),
                "trials": trials,
                "studies": [_side(k, board, now) for k, (board, now) in enumerate(zip(boards, states, strict=True))],
                "rates": [True, []],
                "log": [],
            },
            [b"", np.concatenate(curves).tobytes()],
        )

    def _html(self) -> str:
        return studies_table(self._rows())

    def _rows(self) -> Iterable[dict[str, Any]]:
        for _, board in self._studies.values():
            now = board.state()
            best = now["best"][-1][1] if now["best"] else None
            row = {"study": board.title, "state": now["state"], "trials": now["trials_started"]}
            yield row | {"phases": now["phases_ended"], "luckiest phase": best, "seconds": round(now["at_s"])}

    def _is_over(self) -> bool:
        return all(board.ended for _, board in self._studies.values())

    def _leave(self) -> None:
        self._opened.close()


def _side(k: int, board: Board, now: dict[str, Any]) -> dict[str, Any]:
    """What stands beside the other studies: numbers, the best score against its cost, importance."""
    slots = pd.DataFrame(now["slots"], columns=SLOTS)
    best = np.array([[at, score] for at, score, *_ in now["best"]]).reshape(-1, 2)
    hours = analysis.node_seconds(slots, now["at_s"], [*best[:, 0], now["at_s"]]) / 3600
    color, dash = theme.study_line(k)
    kept = ("state", "at_s", "trials_started", "phases_ended", "expected_phases", "occupancy", "tags")
    return {
        **{name: now[name] for name in kept},
        "name": board.name,
        "title": board.title,
        "scored": scored(board.ledger),
        "importance": board.importance,
        "color": color,
        "dash": dash,
        "best": np.column_stack([hours[:-1].round(6), best[:, 1], best[:, 0].round(6)]).tolist(),
        "node_h": round(float(hours[-1]), 6),
    }
