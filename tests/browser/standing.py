"""The dashboard's page without a notebook: boards of simulated studies, handed to the front end as a kernel would."""

import base64
import json
from collections.abc import Iterator
from uuid import uuid4

import numpy as np

from workbench.algos.search import HyperTrick, RandomSearcher
from workbench.core.protocols import Event, Kind
from workbench.core.size import size_of
from workbench.core.space import Choice, LogUniform, Space
from workbench.knowledge.reader import POINT
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.models import SyntheticCurves
from workbench.simulation.run import simulate
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import READ, News
from workbench.viz.dashboard.front import CODE, Front

SPACE = Space({
    "learning_rate": LogUniform(1e-5, 1e-2), "gamma": Choice([0.9, 0.95, 0.99, 0.995]),
    "t_max": LogUniform(2, 100, step=1), "optimizer": Choice(["adam", "rmsprop"]),
})  # fmt: skip

# A model as anywidget hands one over, with the kernel's messages put in from outside.
MODEL = """
window.stand = async (code, state, message, buffers, dark) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  window.front ??= await import(url);
  const heard = new Map();
  const on = (names, act) => names.split(" ").forEach((n) => heard.set(n, (heard.get(n) ?? new Set()).add(act)));
  const tables = (all) => all.map((b) => new DataView(Uint8Array.from(atob(b), (c) => c.charCodeAt(0)).buffer));
  const model = {
    state, sent: [], get: (n) => model.state[n], save_changes() {}, on,
    off: (names, act) => names.split(" ").forEach((n) => heard.get(n)?.delete(act)),
    set(n, v) { model.state[n] = v; heard.get(`change:${n}`)?.forEach((act) => act()); },
    send(content) { model.sent.push(content); },
    tell(content, all) { heard.get("msg:custom")?.forEach((act) => act(content, tables(all))); },
  };
  window.model = model;
  window.told = message;
  if (dark) {
    document.body.dataset.jpThemeLight = "false";
    const dress = { "ui-font-color1": "#ffffff", "ui-font-color2": "#bdbdbd" };
    Object.assign(dress, { "border-color2": "#424242", "layout-color1": "#212121" });
    for (const [name, color] of Object.entries(dress)) document.body.style.setProperty(`--jp-${name}`, color);
    document.body.style.background = "#212121";
  }
  const el = document.createElement("div");
  document.body.append(el);
  window.front.render({ model, el });
  model.tell(message, buffers);
  window.beating = setInterval(() => model.tell({ type: "beat", number: message.number }, []), 500);
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
    board = Board(name, size_of(scheduler), scheduler.explain)
    board.take(news([e for e in events if e.at <= until]))
    after = [Event(e.kind, until + e.at, e.trial, e.phase, e.slot, e.data) for e in more]
    board.take(news(after + ([Event(Kind.STUDY_ENDED, until)] if share >= 1.0 else [])))
    return board


def stand(page, board: Board, *, dark: bool = False, **state: object) -> None:
    """Show a board in a blank page."""
    content, tables = board.snapshot()
    message = json.loads(json.dumps({"type": "snapshot", "number": 0, **content}, allow_nan=False))
    style = f"<style>body{{margin:0}}{Front._css}</style>"
    page.set_content(f"<!doctype html><html lang=en><title>study</title>{style}<main></main>")
    page.evaluate(MODEL)
    buffers = [base64.b64encode(table).decode() for table in tables]
    given = {
        "_key": uuid4().hex,
        "filter": "",
        "selected": [],
        "visible": None,
        "importance": True,
        "error": "",
        **state,
    }
    page.evaluate("given => window.stand(...given)", [CODE, given, message, buffers, dark])
    page.wait_for_function("document.querySelector('.wb-facts')?.textContent")
