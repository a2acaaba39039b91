"""A generator function as a trial."""

import enum
import inspect
import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import partial, wraps

import numpy as np
import pytest
import torch

from tests import own
from tests.support import silent
from workbench.algos.function.factory import Function, as_factory
from workbench.algos.function.state import load_state, save_state
from workbench.core.describe import describe
from workbench.core.errors import CheckpointError, InvalidInput
from workbench.core.source import source_mark

LOSS = torch.ones(1, requires_grad=True)


def phases(function, n=3, config=None, seed=0):
    trial = as_factory(function)({"lr": 0.5} if config is None else config, seed)
    try:
        return [trial.train_phase(silent) for _ in range(n)]
    finally:
        trial.close()


def line_of(function, words: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if words in line)


def test_what_cannot_be_called_is_refused_as_a_study_refuses_it() -> None:
    with pytest.raises(InvalidInput, match=r"what is trained is a function that yields .* got 'train'"):
        Function("train")


def test_a_phase_is_a_yield() -> None:
    assert phases(own.forgetful) == [{"score": 0.5}, {"score": 1.0}, {"score": 1.5}]


@pytest.mark.parametrize("score", [1, 1.0, np.float32(1), np.int64(1), np.array(1.0), torch.tensor(1.0), LOSS, True])
@pytest.mark.filterwarnings("error")
def test_a_score_is_any_library_s_number(score) -> None:
    def train(config):
        yield score
        yield {"score": score, "loss": score, "returns": [1.0, 2.0]}

    one, more = phases(train, 2)
    assert one == {"score": 1.0}
    assert more == {"score": 1.0, "loss": 1.0, "returns": [1.0, 2.0]}
    assert type(one["score"]) in (int, float)


def test_it_takes_seed_and_state_by_name_and_may_have_defaults() -> None:
    def train(configuration, *, state, seed, epochs=3):
        assert state is None
        yield seed + epochs + configuration["lr"]

    assert phases(train, 1, seed=7) == [{"score": 10.5}]
    assert phases(partial(train, epochs=5), 1, seed=7) == [{"score": 12.5}]
    assert phases(partial(train, epochs=5, seed=1), 1, seed=7) == [{"score": 6.5}]  # a seed that is bound is meant


def test_what_calls_a_generator_is_as_good_as_one() -> None:
    @wraps(own.forgetful)
    def wrapped(*args, **given):
        return own.forgetful(*args, **given)

    class Called:
        def __call__(self, config):
            yield from own.forgetful(config)

    for function in (wrapped, Called(), partial(own.forgetful), Function(lambda config: own.forgetful(config))):
        assert phases(function, 1) == [{"score": 0.5}]


def test_settings_bound_to_what_is_a_function_s_trials_already_are_its_own() -> None:
    """That was refused as a function without a yield."""
    bound = [as_factory(partial(train, step=2)) for train in (own.climb, Function(own.climb))]
    assert describe(bound[1]) == describe(bound[0]) == {"kind": "tests.own:climb", "step": 2}
    assert phases(partial(Function(own.climb), step=2), 2) == phases(partial(own.climb, step=2), 2)
    with pytest.raises(InvalidInput, match="'stepp': did you mean 'step'"):
        as_factory(partial(Function(own.climb), stepp=2))


def no_yield(config):
    return 0.5


def returns_late(config):
    yield 1.0
    return 0.5


def no_state(config, state):
    return 0.5


async def asynchronous(config):
    yield 0.5


def two_things(config, rate):
    yield 0.5


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_yield, "has no yield of its own: .* instead of returning"),
        (no_state, "has no yield of its own"),
        (asynchronous, "is asynchronous, .*: write def"),
        (two_things, "cannot be called with a configuration .*'rate'.*: .* seed and state by these names"),
    ],
)
def test_a_function_that_cannot_be_a_trial_is_refused_before_anything_begins(function, says) -> None:
    with pytest.raises(
        InvalidInput, match=rf"^{function.__name__} \(test_trial.py:{line_of(function, 'def ')}\) {says}"
    ):
        as_factory(function)


def open_to_all(config, **settings):
    yield 0.5


@dataclass
class Kind:
    kind: str

    def __call__(self, config, seed): ...


def test_what_is_no_trainable_at_all() -> None:
    class Half:
        def train_phase(self, progress): ...
        def close(self): ...

    class Seedless(own.Climber):
        def __init__(self, config): ...

    class Builds:
        def __call__(self, config, seed): ...

    def named(step, config, seed):
        return own.Climber(config, seed, step)

    for wrong, says in [
        (3, "got 3"),
        (None, "got None"),
        (own.Climber({}, 0), "got <tests.own.Climber"),
        (Half, "Half lacks save, load: .* where path is a directory"),
        (
            Seedless,
            r"Seedless is called with \(config, seed\): too many positional arguments; a trial's class has __init__",
        ),
        (Builds, r"objects build trials: pass one, Builds\(…\)"),
        (partial(own.climb, stepp=2), r"keyword argument of climb \(own.py:\d+\) 'stepp': did you mean 'step'"),
        (partial(own.Climber, width=2), "keyword argument of Climber.* 'width'; known: step$"),
        (partial(own.Climber, seed=2), "Climber gets the seed of each trial as seed: the study hands it over"),
        (partial(own.Climber, config={}), "Climber gets the configuration of each trial as config: the study"),
        (partial(own.climb, config={}), r"climb \(own.py:\d+\) gets the configuration of each trial as config: "),
        (partial(named, 2.0, seed=2), r"named \(test_trial.py:\d+\) gets the seed of each trial as seed: "),
        (partial(Half, width=2), r"keyword argument of .*Half.* 'width'"),
        (partial(Half), "Half lacks save, load: .* where path is a directory"),
        (partial(Seedless), r"Seedless is called with \(config, seed\): too many positional"),
        (partial(Builds), r"objects build trials: pass one, Builds\(…\)"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            as_factory(wrong)
    bound = partial(open_to_all, kind="cnn")

    def placed(kind, config):
        yield kind

    for wrong in (bound, Function(bound), partial(placed, "cnn"), partial(own.Climber, kind="cnn"), Kind("cnn")):
        with pytest.raises(InvalidInput, match=r"has a setting called kind, .*: give it another|'kind'; known: step"):
            as_factory(wrong)
    for right in (
        own.Climber,
        Builds(),
        partial(own.Climber, step=2.0),
        partial(named, 2.0),
        lambda config, seed: own.Climber(config, seed),
    ):
        assert as_factory(right) is right


def yielding(value):
    def train(config):
        yield value

    return train


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("0.5", "yielded '0.5': yield a number"),
        pytest.param(np.array("0.5"), "yielded array.'0.5'.*: yield a number", id="text of numpy"),
        (None, "yielded None"),
        pytest.param(10**400, "yielded 1000", id="beyond any float"),
        ([0.5], "yielded .0.5."),
        ((0.5, 1, 2), "yielded"),
        ({"loss": 0.5}, "yielded .'loss': 0.5., which has no score"),
        ({"score": 0.5, "loss": "low"}, "yielded 'low' as 'loss'"),
        (np.zeros(3), "yielded array"),
        ((0.5, {"weights": 1}), "yielded a state, but cannot take it back: give it an argument state=None"),
    ],
)
def test_what_is_no_score_is_refused_with_the_line_of_the_yield(value, says) -> None:
    function = yielding(value)
    line = line_of(function, "yield value")
    with pytest.raises(InvalidInput, match=rf"^train \(test_trial.py:{line - 1}\) in line {line} {says}"):
        phases(function, 1)


def test_a_function_that_ends_too_soon_says_after_how_many_yields() -> None:
    with pytest.raises(InvalidInput, match=r"^forgetful \(own.py:\d+\) ended after 9 yields and another phase was due"):
        phases(own.forgetful, 10)
    with pytest.raises(InvalidInput, match=r"ended after 1 yield and returned 0.5, which is not used, and another"):
        phases(returns_late, 2)

    def never(config):
        if not config:
            yield

    with pytest.raises(InvalidInput, match="ended without a yield"):
        phases(never, 1)


def test_what_it_raises_comes_out_as_it_is_and_what_would_end_the_worker_does_not() -> None:
    def raises(config):
        yield config["momentum"]

    def leaves(config):
        raise SystemExit("no data")
        yield

    with pytest.raises(KeyError, match="momentum"):
        phases(raises)
    with pytest.raises(RuntimeError, match="SystemExit no data"):
        phases(leaves)


# -- its state ------------------------------------------------------------------------------------------------


class Colour(enum.IntEnum):
    RED = 1


class Word(enum.StrEnum):
    ONE = "one"


def test_a_state_of_tensors_arrays_and_nested_dicts_comes_back_as_it_was(tmp_path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    moments = {0: {"step": torch.tensor(3.0), "exp_avg": torch.ones(3, 2), "exp_avg_sq": torch.ones(3, 2)}}
    given = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict() | {"state": moments},
        "arrays": [np.arange(6, dtype=np.uint16).reshape(2, 3), np.array(["a", "bc"]), np.zeros((0, 2), bool)],
        "drawn": np.random.default_rng(0).bit_generator.state,
        "best": np.float64(0.5),
        "named": [np.str_("text"), Colour.RED, Word.ONE],
        ("a", 1): (None, True, 3, 2**80, "text", b"\x00bytes", b"", 1j),
        7: {"deep": {"deeper": torch.tensor([1.5], dtype=torch.bfloat16)}},
    }

    def train(config, state=None):
        yield 1.0, given if state is None else state
        yield 2.0, state

    first, second = Function(train)({}, 0), Function(train)({}, 1)
    first.train_phase(silent)
    first.save(tmp_path)
    second.load(tmp_path)
    assert second.train_phase(silent) == {"score": 1.0}
    back = second._state
    other = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    other.load_state_dict(back["model"])
    torch.optim.Adam(other.parameters()).load_state_dict(back["optimizer"])
    assert all(torch.equal(a, b) for a, b in zip(other.state_dict().values(), given["model"].values(), strict=True))
    for was, now in zip(given["arrays"], back["arrays"], strict=True):
        assert now.dtype == was.dtype
        np.testing.assert_array_equal(now, was)
    back["arrays"][0] += 1  # it can be written to
    np.random.default_rng(1).bit_generator.state = back["drawn"]
    assert {key: back[key] for key in ("best", ("a", 1))} == {key: given[key] for key in ("best", ("a", 1))}
    assert [(type(x), x) for x in back["named"]] == [(str, "text"), (int, 1), (str, "one")]
    assert torch.equal(back[7]["deep"]["deeper"], given[7]["deep"]["deeper"])


class Named(torch.Tensor):
    """As torchvision's images, and others' tensors with names for their axes."""


def test_a_tensor_of_a_class_of_its_own_comes_back_as_a_tensor_and_a_layers_weights_as_they_were(tmp_path) -> None:
    weights = torch.nn.Parameter(torch.ones(2))
    save_state({"named": torch.ones(2).as_subclass(Named), "weights": weights, "too": weights}, tmp_path, "train")
    read = load_state(tmp_path, "train")
    assert type(read["named"]) is torch.Tensor
    assert type(read["weights"]) is torch.nn.Parameter
    assert read["weights"].data_ptr() == read["too"].data_ptr()  # tied, and still
    assert all(part.tolist() == [1, 1] for part in read.values())


def test_of_a_view_no_more_is_saved_than_it_shows(tmp_path) -> None:
    save_state({"filled": torch.arange(100_000.0)[:3]}, tmp_path, "train")
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 4000
    assert load_state(tmp_path, "train")["filled"].tolist() == [0, 1, 2]


def test_a_state_that_holds_itself_is_refused(tmp_path) -> None:
    state: dict = {"i": 1}
    state["all"] = [state]
    with pytest.raises(InvalidInput, match=r"^train: the state holds itself, or is nested too deep"):
        save_state(state, tmp_path, "train")
    assert not list(tmp_path.iterdir())


def test_a_state_with_the_key_that_marks_arrays_is_refused(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"^train: state\['x'\] has a key 'array of numpy', .*: choose another$"):
        save_state({"x": {"array of numpy": 1}}, tmp_path, "train")


def test_a_state_that_could_run_code_when_read_is_refused_with_its_place(tmp_path) -> None:
    def train(config, state=None):
        yield 1.0, {"models": [config, {"net": own.Climber({}, 0)}]}

    trial = Function(train)({"a": 1}, 0)
    trial.train_phase(silent)
    with pytest.raises(
        InvalidInput, match=r"state\['models'\]\[1\]\['net'\] is <.*>, a Climber: a state holds tensors"
    ):
        trial.save(tmp_path)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), "MaskedArray"),
        (np.ma.masked, "MaskedConstant"),
        (np.longdouble(1) / 3, "longdouble"),
        (np.clongdouble(1j), "clongdouble"),
    ],
)
def test_a_state_that_would_come_back_as_another_is_refused(tmp_path, given, kind) -> None:
    with pytest.raises(InvalidInput, match=rf"^train: state\['x'\] is .+, a {kind}: a state holds tensors") as refused:
        save_state({"x": given}, tmp_path, "train")
    assert "\n" not in str(refused.value)
    save_state({"x": np.full(2, np.longdouble(1) / 3)}, tmp_path, "train")  # whose bytes are kept
    assert (load_state(tmp_path, "train")["x"] == np.longdouble(1) / 3).all()


class Evil:
    def __reduce__(self):
        return (exec, ("raise AssertionError('ran')",))


def test_a_checkpoint_is_read_without_running_what_is_in_it(tmp_path) -> None:
    torch.save({"state": Evil()}, tmp_path / "state.pt")  # as until 0.2
    with pytest.raises(CheckpointError, match=r"state\.pt cannot be read"):
        Function(own.climb)({}, 0).load(tmp_path)
    (tmp_path / "state.pickle").write_bytes(pickle.dumps({"state": Evil()}))
    with pytest.raises(CheckpointError, match=r"state\.pickle cannot be read: it names builtins\.exec"):
        Function(own.climb)({}, 0).load(tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 20, -1])
def test_a_state_that_is_cut_off_is_no_state(tmp_path, kept) -> None:
    save_state({"at": 3, "weights": np.ones(100), "tensor": torch.ones(2)}, tmp_path, "train")
    whole = (tmp_path / "state.pickle").read_bytes()
    (tmp_path / "state.pickle").write_bytes(whole[:kept])
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_state(tmp_path, "train")
    (tmp_path / "state.pickle").write_bytes(whole)
    (tmp_path / "tensors.pt").unlink()
    with pytest.raises(CheckpointError, match=r"cannot be read: .*tensors\.pt"):
        load_state(tmp_path, "train")


def test_a_state_of_before_is_read(tmp_path) -> None:
    raw = torch.arange(3, dtype=torch.uint8)
    array = {"array of numpy": raw, "dtype": "|u1", "shape": (3,)}
    torch.save({"a": array, "b": {"array of numpy": raw, "dtype": "bytes"}, "c": (1, raw)}, tmp_path / "state.pt")
    back = load_state(tmp_path, "train")
    assert (back["a"].tolist(), back["b"], back["c"][1].tolist()) == ([0, 1, 2], b"\x00\x01\x02", [0, 1, 2])


def test_a_state_without_tensors_needs_no_torch(tmp_path) -> None:
    code = """
import sys
sys.modules["torch"] = None  # an import of it fails
from pathlib import Path
import numpy as np
from workbench.algos.function.state import load_state, save_state
here = Path(sys.argv[1])
save_state({"x": np.arange(3), "y": [1.5, b"z", 1j], "s": np.bytes_(b"s")}, here, "train")
back = load_state(here, "train")
assert (back["x"].tolist(), back["y"], back["s"]) == ([0, 1, 2], [1.5, b"z", 1j], b"s"), back
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


# -- while it runs --------------------------------------------------------------------------------------------


class UnwantedError(BaseException):
    pass


def test_it_shows_life_while_it_computes_and_stops_when_it_is_unwanted(monkeypatch) -> None:
    monkeypatch.setattr("workbench.algos.function.trial._SIGN_S", 0.01)
    stopped, signs = threading.Event(), []

    def train(config):
        try:
            while True:
                sum(range(100))
        finally:
            stopped.set()
        yield

    def progress(metrics):
        signs.append(metrics)
        if len(signs) == 5:
            raise UnwantedError

    trial = as_factory(train)({}, 0)
    with pytest.raises(UnwantedError):
        trial.train_phase(progress)
    assert stopped.is_set()
    assert signs == [{}] * 5
    trial.close()
    trial.close()
    assert not trial._thread._thread.is_alive()


def test_its_finally_blocks_run_when_the_trial_is_closed() -> None:
    closed = []

    def train(config):
        try:
            while True:
                yield 1.0
        finally:
            closed.append(threading.current_thread().name)

    trial = as_factory(train)({}, 0)
    trial.train_phase(silent)
    trial.close()
    assert closed == [f"trial of train (test_trial.py:{line_of(train, 'def ')})"]


# -- on record ------------------------------------------------------------------------------------------------


def test_the_record_says_which_function_and_its_mark_follows_its_code() -> None:
    assert describe(as_factory(own.forgetful)) == {"kind": "tests.own:forgetful"}
    assert describe(as_factory(own.climb)) == {"kind": "tests.own:climb", "step": 1.0}
    assert describe(as_factory(partial(own.climb, step=2))) == {"kind": "tests.own:climb", "step": 2}
    assert describe(own.Climber) == {"kind": "tests.own:Climber", "step": 1.0}
    marks = {source_mark(as_factory(f)) for f in (own.climb, own.forgetful, partial(own.climb, step=2))}
    assert len(marks) == 2
    assert None not in marks
