"""What a script defines, in a process of multiprocessing's that runs it under another name."""

import subprocess
import sys
from functools import cache
from urllib.parse import urlsplit

import cloudpickle
import pytest

from tests.support import FROM_HERE
from workbench.core.describe import describe
from workbench.core.script import code_path, pickled

_SCRIPT = """
import sys
from multiprocessing import get_context
from workbench import Space, Uniform
from workbench.core.describe import describe
from workbench.core.script import pickled

class Six:
    number = 6

def train(config):
    return 7 * Six.number

def job():
    told = train, describe(train), Space({{"x": Uniform(0, 1)}}, constraint=train).to_json()["constraint"]
    sys.stdout.buffer.write(pickled(told))

if __name__ == "__main__":
    process = get_context({method!r}).Process(target=job)
    process.start()
    process.join()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_it_travels_whole_and_is_named_as_in_the_script_itself(tmp_path, method) -> None:
    (script := tmp_path / "script.py").write_text(_SCRIPT.format(method=method))
    done = subprocess.run([sys.executable, str(script)], env=FROM_HERE, capture_output=True, check=True)
    train, *described = cloudpickle.loads(done.stdout)
    assert train({}) == 42
    assert described == [{"kind": "__main__:train"}] * 2


def test_what_a_module_defines_is_found_there() -> None:
    assert cloudpickle.loads(pickled(FROM_HERE)) == FROM_HERE
    assert cloudpickle.loads(pickled(describe)) is describe
    assert code_path(describe) == "workbench.core.describe:describe"
    assert "__main__" not in cloudpickle.list_registry_pickle_by_value()


_CACHED = """
import sys
from functools import cache, lru_cache
from workbench.core.script import pickled

@cache
def data():
    return [7]

class Sums:
    @lru_cache(maxsize=5)
    def upto(self, n):
        return n and n + self.upto(n - 1)

def train(config):
    return sum(data()) * Sums().upto(3), Sums.upto.cache_parameters()["maxsize"], data() is data()

sys.stdout.buffer.write(pickled(train))
"""


def test_what_a_script_has_cached_travels_with_its_code(tmp_path) -> None:
    (script := tmp_path / "script.py").write_text(_CACHED)
    done = subprocess.run([sys.executable, str(script)], env=FROM_HERE, capture_output=True, check=True)
    assert cloudpickle.loads(done.stdout)({}) == (42, 5, True)


def test_what_a_module_has_cached_is_found_there_and_anything_else_travels() -> None:
    @cache
    def six() -> int:
        return 6

    assert cloudpickle.loads(pickled(urlsplit)) is urlsplit
    ways = cache(urlsplit.__wrapped__)  # called as another is
    assert cloudpickle.loads(pickled(lambda: (six(), ways("a:b").path)))() == (6, "b")
