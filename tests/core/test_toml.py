import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.core.errors import InvalidInput
from workbench.core.toml import read_toml, toml_lines

words = st.text(st.characters(codec="utf-8"), max_size=8)
plain = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), words)
mixed = st.lists(st.one_of(plain, st.dictionaries(words, plain, max_size=2)), max_size=3)
tables = st.recursive(
    st.dictionaries(words, st.one_of(plain, mixed), max_size=4),
    lambda inner: st.dictionaries(words, st.one_of(plain, inner, st.lists(inner, min_size=1, max_size=2)), max_size=3),
    max_leaves=6,
)


@settings(max_examples=50)
@given(tables)
def test_what_is_written_is_read_back(table) -> None:
    assert tomllib.loads("\n".join(toml_lines(table))) == table


def test_a_list_may_hold_words_beside_tables() -> None:
    """As wrappers do, some of which have arguments."""
    wrappers = {"wrappers": ["a:One", {"a:Two": {"n": 3, "words": ["x", {"y": True}]}}]}
    assert tomllib.loads("\n".join(toml_lines(wrappers))) == wrappers


def test_what_is_not_there_is_left_out() -> None:
    assert list(toml_lines({"a": None, "b": {"c": None, "d": [1, 2.5]}})) == ["\n[b]", "d = [1, 2.5]"]
    assert tomllib.loads("\n".join(toml_lines({"a": [1, None, {"b": None}], "c": [None]}))) == {"a": [1, {}], "c": []}
    assert math.isnan(tomllib.loads("\n".join(toml_lines({"x": math.nan})))["x"])


def test_what_is_no_text_and_no_file_is_refused_in_one_line(tmp_path) -> None:
    (tmp_path / "old.toml").write_bytes("name = 'café'".encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"old.toml is not a valid TOML file: 'utf-8' codec"):
        read_toml(tmp_path / "old.toml", "study file")
    with pytest.raises(InvalidInput, match=f"cannot read the study file {tmp_path}: Is a directory"):
        read_toml(tmp_path, "study file")
