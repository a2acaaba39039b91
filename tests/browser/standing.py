"""The dashboard's page without a notebook: boards of simulated studies, handed to the front end as a kernel would."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock
from uuid import uuid4

import numpy as np

from workbench.algos.search import HyperTrick, RandomSearcher
from workbench.core.describe import describe
from workbench.core.domains import Choice, LogUniform
from workbench.core.protocols import Event, Kind
from workbench.core.size import size_of
from workbench.core.space import Space
from workbench.knowledge import StudyLog
from workbench.knowledge.reader import POINT
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.models import SyntheticCurves
from workbench.simulation.run import simulate
from workbench.viz.dashboard.board import Board, Message
from workbench.viz.dashboard.comparison import Comparison
from workbench.viz.dashboard.estimator import Estimator
from workbench.viz.dashboard.feed import READ, News
from workbench.viz.dashboard.front import CODE, CSS
from workbench.viz.dashboard.home import Home

SPACE = Space({
    "learning_rate": LogUniform(1e-5, 1e-2), "gamma": Choice([0.9, 0.95, 0.99, 0.995]),
    "t_max": LogUniform(2, 100, step=1), "optimizer": Choice(["adam", "rmsprop"]),
})  # fmt: skip

# A model as anywidget hands one over, with the kernel's messages put in from outside.
MODEL = """
window.makeModel = (state, message, buffers) => {
  const heard = new Map();
  const on = (names, act) => names.split(" ").forEach((n) => heard.set(n, (heard.get(n) ?? new Set()).add(act)));
  const tables = (all) => all.map((b) => new DataView(Uint8Array.from(atob(b), (c) => c.charCodeAt(0)).buffer));
  const model = {
    state, sent: [], get: (n) => model.state[n], save_changes() {}, on,
    off: (names, act) => names.split(" ").forEach((n) => heard.get(n)?.delete(act)),
    set(n, v) { model.state[n] = v; heard.get(`change:${n}`)?.forEach((act) => act()); },
    send(content) {
      model.sent.push(content);
      if (content.type === "snapshot") setTimeout(() => model.tell(message, buffers));
    },
    tell(content, all) {
      model.number = content.number;
      heard.get("msg:custom")?.forEach((act) => act(content, tables(all)));
    },
  };
  return model;
};
window.stand = async (code, models, dark, silent) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  window.front ??= await import(url);
  window.models = models.map((given) => window.makeModel(...given));
  [window.model] = window.models;
  [[, window.told]] = models;
  if (dark) {
    document.body.dataset.jpThemeLight = "false";
    const dress = { "ui-font-color1": "#ffffff", "ui-font-color2": "#bdbdbd" };
    Object.assign(dress, { "border-color2": "#424242", "layout-color1": "#212121" });
    for (const [name, color] of Object.entries(dress)) document.body.style.setProperty(`--jp-${name}`, color);
    document.body.style.background = "#212121";
  }
  if (silent) window.models.forEach((model) => (model.tell = () => {}));
  const el = document.createElement("div");
  document.body.append(el);
  const find = async (reference) => window.models.find((model) => reference === `anywidget:${model.state._key}`);
  window.leave = window.front.render({ model: window.model, el, find });
  const beat = (model) => model.tell({ type: "beat", number: model.number ?? 0 }, []);
  const mine = window.models; // an earlier page's goes on, and must not speak for these
  window.beating = setInterval(() => mine.forEach(beat), 500);
};
null;  // a function would be called
"""


def with_progress(events: list[Event], rng: np.random.Generator, each: int = 12) -> Iterator[Event]:
    """Put reports between the beginning and the end of every phase, as a real trial would give them."""
    ends = {(e.trial, e.phase): e for e in events if e.kind is Kind.PHASE_ENDED}
    for event in events:
        yield event
        end = ends.get((event.trial, event.phase)) if event.kind is Kind.PHASE_STARTED else None
        if end is None or event.phase is None:
            continue
        for k in range(1, each):
            share = k / each
            score = float(end.data["score"]) * (0.7 + 0.3 * share) + 0.02 * rng.normal()
            told = {"score": score, "frames": 1e5 * (event.phase + share), "pps": 900 + 40 * rng.normal(), "tps": 60.0}
            at = event.at + share * (end.at - event.at)
            yield Event(Kind.PROGRESS, at, event.trial, event.phase, event.slot, {"metrics": told})


def events_of(n_trials: int, n_phases: int = 5, nodes: int = 8, seed: int = 0) -> tuple[HyperTrick, list[Event]]:
    """Simulate a HyperTrick study: its scheduler, and all that happens."""
    scheduler = HyperTrick(RandomSearcher(SPACE, seed=seed), n_trials, n_phases, 0.25)
    events: list[Event] = []
    model = SyntheticCurves(SPACE, n_phases, phase_s=60.0, luck=0.2, seed=seed)
    simulate(scheduler, model, VirtualCluster(nodes, 1, speed_spread=0.2, startup_s=4.0, seed=seed), events=events)
    return scheduler, sorted(with_progress(events, np.random.default_rng(seed)), key=lambda event: event.at)


def news(events: list[Event]) -> News:
    """What a feed makes of these events."""
    points = [
        (e.trial, e.phase, e.at, READ.index(name), value)
        for e in events if e.kind is Kind.PROGRESS
        for name, value in e.data["metrics"].items() if name in READ
    ]  # fmt: skip
    return News([e for e in events if e.kind is not Kind.PROGRESS], np.array(points, POINT))


def board_of(
    n_trials: int, share: float = 1.0, name: str = "pong-night", more: tuple[Event, ...] = (), **how: int
) -> Board:
    """A board of a simulated study of which this share of the time has passed."""
    scheduler, events = events_of(n_trials, **how)
    until = share * events[-1].at
    board = Board(name, size_of(scheduler), scheduler.explain, space=SPACE)
    board.take(news([e for e in events if e.at <= until]))
    after = [Event(e.kind, until + e.at, e.trial, e.phase, e.slot, e.data) for e in more]
    board.take(news(after + ([Event(Kind.STUDY_ENDED, until)] if share >= 1.0 else [])))
    return board


def model_of(message: Message, **state: object) -> list[object]:
    """A model's state, and what its kernel answers when a view asks for a snapshot."""
    content, tables = message
    told = json.loads(json.dumps({"type": "snapshot", "number": 0, **content}, allow_nan=False))
    plain = {"_key": uuid4().hex, "filter": "", "selected": [], "visible": None, "importance": True, "error": ""}
    return [{**plain, **state}, told, [base64.b64encode(table).decode() for table in tables]]


def stand(page, board: Board, *, dark: bool = False, **state: object) -> None:
    """Show a board in a blank page."""
    show(page, [model_of(board.snapshot(), **state)], dark=dark)
    page.wait_for_function("document.querySelector('.wb-facts')?.textContent")


def show(page, models: list[list[object]], *, dark: bool = False, silent: bool = False) -> None:
    """Show the first of these models in a blank page; it finds the others by their keys. If `silent`, none answers."""
    style = f"<style>body{{margin:0}}{CSS}</style>"
    page.set_content(f"<!doctype html><html lang=en><title>study</title>{style}<main></main>")
    page.evaluate(MODEL)
    page.evaluate("given => window.stand(...given)", [CODE, models, dark, silent])


def write_studies(db: Path, **shares: float) -> None:
    """Write simulated studies of 40 trials to a knowledge base, each as far as its share of its time."""
    for seed, (name, share) in enumerate(shares.items()):
        scheduler, events = events_of(40, seed=seed)
        until = share * events[-1].at
        spec = {"scheduler": describe(scheduler), "trainable": {"kind": "synthetic"}, "seed": seed}
        log = StudyLog(db, name, spec)
        log.append([Event(Kind.STUDY_STARTED, 0.0, data={"size": size_of(scheduler).to_json()})])
        log.append([event for event in events if event.at <= until])
        log.append([Event(Kind.STUDY_ENDED, until)] if share >= 1.0 else [])
        log.close()


NOT_ASKED = [{"phase": None, "rows": [], "told": "not asked"}]


def _answer(board, estimator: Estimator, explained: Callable) -> None:
    """Let a board know what forests would say, and a look at it, which may come meanwhile, too."""
    estimator.answers = explained(board)
    board.learn(importance=estimator.answers)


def stand_home(page, db: Path, *names: str, dark: bool = False, explained: Callable = lambda _: NOT_ASKED) -> None:
    """Show the studies of a knowledge base with these open; `explained` says of a board what forests would."""
    with mock.patch.object(Estimator, "look"):
        home = Home(db, refresh_s=3600.0)
        try:
            home.selected = list(names)
            home.refresh()
            models = [model_of(next(home._snapshot()), _kind="home", selected=list(names), _shown=home._shown)]
            if isinstance(home.board, Comparison):
                for name, (_, board) in home.board._studies.items():
                    _answer(board, home.board._estimators[name], explained)
            elif home.board is not None:
                _answer(home.board._board, home.board._estimator, explained)
            if home.board is not None:
                key = home._shown.replace("anywidget:", "")
                models.append(model_of(next(home.board._snapshot()), _kind=home.board._kind, _key=key))
        finally:
            home.close()
    show(page, models, dark=dark)
    page.wait_for_selector(".wb-studies tbody tr")
