"""Errors in words."""

import pytest

from workbench.core.errors import InvalidInput, file_errors, unknown


def test_unknown_names_near_matches_whatever_their_case() -> None:
    assert "did you mean 'Pong'?" in str(unknown("game", "pogn", ["Pong", "Boxing"]))


def test_what_a_file_cannot_be_is_one_line_that_names_no_hidden_part(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"^page: No such file or directory$"), file_errors("page"):
        (tmp_path / "none" / ".page.part").write_text("")
    with pytest.raises(InvalidInput, match=r"^page: No such file or directory at .*none.page$"), file_errors("page"):
        (tmp_path / "none" / "page").write_text("")
