"""Watch an agent: a checkpoint plays a game into a picture that moves, with what it thinks drawn underneath.

The GA3C and HyperTrick papers read policies off such videos. Shown is what the network sees (the newest of its
frames), then the value and the entropy of the last steps, the rewards, and the probability of every action.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import ale_py
import ale_py.roms
import numpy as np
import torch
from PIL import Image, ImageDraw

from workbench.algos.rl.agents import sample
from workbench.algos.rl.checkpoint import load_agent
from workbench.algos.rl.envs import make_envs
from workbench.algos.rl.frames import STACK
from workbench.algos.rl.games import DEFAULT_RULES, Game, Rules
from workbench.algos.rl.model import ActorCritic
from workbench.core.checks import POSITIVE, plain_seed, whole
from workbench.core.errors import InvalidInput, unknown
from workbench.core.extras import how_to_get
from workbench.core.places import whole_file
from workbench.core.seeds import derived
from workbench.core.showing import so_many

WIDTH, SCREEN, PANEL = 336, 336, 132  # pixels: of all, of the game, of what is drawn under it
LEAST_ROW = 14  # pixels of a feature's bar and words
HISTORY = 120  # steps the curves show
GREYS = 250  # palette entries 0 … 249 are greys, those behind them the colours below
WHITE, BLUE, ORANGE, GREEN, RED, DIM = 249, 250, 251, 252, 253, 254
COLOURS = {BLUE: (86, 180, 233), ORANGE: (230, 159, 0), GREEN: (0, 158, 115), RED: (213, 94, 0), DIM: (110, 110, 110)}
DELAYS_MS = {".gif": 10, ".webp": 1}  # what a picture's delay is a multiple of
MOST_FPS = 50  # of a .gif: browsers show shorter delays as a tenth of a second
MIME = {".gif": "image/gif", ".webp": "image/webp", ".mp4": "video/mp4"}


@dataclass(frozen=True, slots=True)
class Thought:
    """One step as it is drawn.

    Attributes
    ----------
    obs : ndarray
        One observation.
    policy : ndarray, (n_actions,)
    value, entropy, reward, score : float
        Entropy in nats; `reward` is of the step that led here, `score` the raw return so far.
    action : int
    """

    obs: np.ndarray
    policy: np.ndarray
    value: float
    entropy: float
    action: int
    reward: float
    score: float


@dataclass(frozen=True, slots=True)
class Recording:
    """A played game, as a file that notebooks show.

    Attributes
    ----------
    path : Path
    score : float
        Raw return.
    steps : int
        Agent steps played.
    """

    path: Path
    score: float
    steps: int

    def _repr_html_(self) -> str:
        mime = MIME[self.path.suffix]
        source = f"data:{mime};base64,{base64.b64encode(self.path.read_bytes()).decode()}"
        caption = f"{self.path.stem}: score {self.score:g} after {so_many(self.steps, 'step')}"
        if mime.startswith("video"):
            picture = f'<video controls loop src="{source}" width="{WIDTH}"></video>'
        else:
            picture = f'<img src="{source}" width="{WIDTH}" alt="{escape(caption)}">'
        return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"


def watch(
    checkpoint: str | Path,
    path: str | Path,
    *,
    game: str | Game | None = None,
    seed: int = 0,
    greedy: bool = False,
    max_steps: int = 1500,
    fps: float = 15.0,
) -> Recording:
    """Let a checkpoint play one game, and draw it.

    Parameters
    ----------
    checkpoint : str or Path
        A directory written by `Trial.save`.
    path : str or Path
        The file to write: ``.gif`` or ``.webp``; ``.mp4``, smaller, needs the package imageio-ffmpeg.
    game : str or Game, optional
        Another game than the checkpoint's; see `load_agent`.
    seed : int
        Of the game's start and the actions.
    greedy : bool
        Take the likeliest action instead of drawing one.
    max_steps : int
        Steps to draw at most; the game may go on after them.
    fps : float
        Steps shown a second, 50 at most in a .gif; 15 is the game's own speed on Atari, where a step is 4 of 60 frames.

    Returns
    -------
    Recording
        Shows itself as the result of a notebook's cell.

    Raises
    ------
    InvalidInput
        No such checkpoint, a file name of another kind, or numbers of steps that are none.
    """
    path = Path(path)
    if path.suffix not in MIME:
        raise unknown("kind of moving picture", path.suffix or path.name, MIME)
    for name, value, rule in (("max_steps", max_steps, whole(1)), ("fps", fps, POSITIVE)):
        if not rule.fits(value):
            raise InvalidInput(f"to watch a game takes {name}, {rule.words}, got {value!r}")
    if path.suffix == ".gif" and fps > MOST_FPS:
        raise InvalidInput(f"a .gif shows {MOST_FPS} steps a second at most, got fps={fps!r}: write a .webp or .mp4")
    if path.suffix == ".mp4" and find_spec("imageio_ffmpeg") is None:
        get = how_to_get("imageio_ffmpeg")
        raise InvalidInput(f"writing {path.name} needs imageio-ffmpeg: {get}, or write a .gif or .webp")
    model, env, rules = load_agent(checkpoint, game)
    names = action_names(env)
    history: list[Thought] = []
    frames = []
    for thought in play(model, env, seed, greedy, max_steps, rules):
        history = [*history[1 - HISTORY :], thought]
        frames.append(draw(env, history, names))
    with whole_file(path) as part:
        _write(part, path.suffix, frames, fps)
    return Recording(path, history[-1].score, len(frames) - 1)


def play(
    model: ActorCritic, game: Game, seed: int, greedy: bool, max_steps: int, rules: Rules = DEFAULT_RULES
) -> Iterator[Thought]:
    """Play one game from its start to its end, or for `max_steps`, with generators of its own."""
    seed = plain_seed(seed)
    generator = np.random.default_rng([seed, 1])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for one observation, more threads only wait for each other
    start = derived(seed, 0)
    envs = make_envs(game, 1, start, rules, n_threads=1)
    score = 0.0
    try:
        for number in range(max_steps):
            step = envs.recv()
            score += float(step.rewards[0])
            with torch.inference_mode():
                logits, values = model(torch.from_numpy(step.obs).to(model.head.weight.device))
                policy = torch.softmax(logits, 1).cpu().numpy()
            action = policy.argmax(1) if greedy else sample(policy, generator)
            entropy = float(-(policy * np.log(policy + 1e-6)).sum())
            reward = float(step.rewards[0])
            yield Thought(step.obs[0], policy[0], float(values[0]), entropy, int(action[0]), reward, score)
            if number and (step.terminated[0] or step.truncated[0]):
                return
            envs.send(action)
    finally:
        envs.close()
        torch.set_num_threads(threads)


def action_names(game: Game) -> list[str]:
    """Name a game's actions, in the order of its policy."""
    if not game.atari:
        return [f"action {number}" for number in range(game.n_actions)]
    ale = ale_py.ALEInterface()
    ale.loadROM(ale_py.roms.get_rom_path(game.name))
    return [action.name.lower() for action in ale.getMinimalActionSet()]


def draw(game: Game, history: list[Thought], names: list[str]) -> Image.Image:
    """Draw the last of `history`, and the curves that led to it; an image in palette mode."""
    now = history[-1]
    image = Image.new("P", (WIDTH, SCREEN + PANEL), 0)
    image.putpalette(_palette())
    pen = ImageDraw.Draw(image)
    if game.atari:
        newest = now.obs[-len(now.obs) // STACK :].mean(0).astype(np.uint16)  # one plane, or three in colour
        screen = np.kron(newest * (GREYS - 1) // 255, np.ones((4, 4), np.uint16))
        image.paste(Image.fromarray(screen.astype(np.uint8)), (0, 0))
    elif now.obs.ndim == 3:
        image.paste(_picture(now.obs), (0, 0))
    else:
        _draw_features(pen, now.obs)
    left = WIDTH // 2 - 6
    _draw_curve(pen, [t.value for t in history], (6, SCREEN + 18, left, SCREEN + 62), BLUE, f"value {now.value:+.2f}")
    _draw_curve(
        pen,
        [t.entropy for t in history],
        (6, SCREEN + 82, left, SCREEN + 126),
        ORANGE,
        f"entropy {now.entropy:.2f} nats",
    )
    for number, thought in enumerate(history):
        if thought.reward:
            x = 6 + (left - 6) * number // HISTORY
            pen.line((x, SCREEN + 64, x, SCREEN + 69), fill=GREEN if thought.reward > 0 else RED, width=2)
    pen.text((WIDTH // 2 + 6, SCREEN + 4), f"score {now.score:g}  reward {now.reward:+g}", fill=WHITE)
    _draw_policy(pen, now, names)
    return image


def _draw_policy(pen: ImageDraw.ImageDraw, now: Thought, names: list[str]) -> None:
    """A bar an action, the chosen one in blue; games of many actions show the likeliest six."""
    shown = np.sort(np.argsort(-now.policy, kind="stable")[:6])
    if now.action not in shown:
        shown[-1] = now.action
    for row, number in enumerate(shown):
        x, y = WIDTH // 2 + 6, SCREEN + 22 + 18 * row
        chosen = number == now.action
        pen.rectangle((x, y, x + max(1, round(90 * float(now.policy[number]))), y + 12), fill=BLUE if chosen else DIM)
        pen.text((x + 96, y), names[number][:12], fill=WHITE if chosen else DIM)


def _draw_curve(
    pen: ImageDraw.ImageDraw, values: list[float], box: tuple[int, int, int, int], colour: int, title: str
) -> None:
    """A curve over the last steps, as high as its own range, with its title above."""
    left, top, right, bottom = box
    pen.text((left, top - 14), title, fill=colour)
    low, high = min(values), max(values)
    span = max(high - low, 1e-6)
    points = [
        (left + (right - left) * k / HISTORY, bottom - (bottom - top) * (v - low) / span) for k, v in enumerate(values)
    ]
    pen.line(points if len(points) > 1 else [*points, *points], fill=colour)


def _picture(obs: np.ndarray) -> Image.Image:
    """Show a picture or a grid (channels, height, width) in grey: what its channels hold in the mean."""
    grey = obs.astype(np.float32).mean(0)
    grey = (grey - grey.min()) / max(float(np.ptp(grey)), 1e-6) * (GREYS - 1)
    return Image.fromarray(grey.astype(np.uint8)).resize((SCREEN, SCREEN), Image.Resampling.NEAREST)


def _draw_features(pen: ImageDraw.ImageDraw, obs: np.ndarray) -> None:
    """Observations that are no picture: a bar a feature, as many as fit, from the middle, tanh-shortened."""
    height = max(LEAST_ROW, min(40, SCREEN // len(obs)))
    shown = obs if len(obs) * height <= SCREEN else obs[: SCREEN // height - 1]
    if len(shown) < len(obs):
        pen.text((6, len(shown) * height + 4), f"and {len(obs) - len(shown)} more", fill=DIM)
    for row, value in enumerate(shown):
        y, length = row * height + 4, float(np.tanh(value)) * (WIDTH / 2 - 70)
        pen.text((6, y + 4), f"{row}: {float(value):+.2f}", fill=WHITE)
        pen.rectangle((WIDTH / 2 + min(0.0, length), y, WIDTH / 2 + max(0.0, length), y + height - 8), fill=BLUE)


def _palette() -> list[int]:
    greys = [level for k in range(GREYS) for level in [round(255 * k / (GREYS - 1))] * 3]
    return greys + [level for colour in COLOURS.values() for level in colour]


def _write(path: Path, kind: str, frames: list[Image.Image], fps: float) -> None:
    if unit := DELAYS_MS.get(kind):
        ends = [unit * round(1000 * number / fps / unit) for number in range(len(frames) + 1)]
        delays = [end - start for start, end in pairwise(ends)]  # which add up to the pace asked for
        frames[0].save(path, kind[1:], save_all=True, append_images=frames[1:], duration=delays, loop=0)
        return
    import imageio_ffmpeg

    size, as_mp4 = frames[0].size, ["-f", "mp4"]  # which the path does not say
    writer = imageio_ffmpeg.write_frames(str(path), size, fps=fps, macro_block_size=4, output_params=as_mp4)
    writer.send(None)
    for frame in frames:
        writer.send(np.asarray(frame.convert("RGB")).tobytes())
    writer.close()
