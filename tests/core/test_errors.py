"""Errors in words."""

from workbench.core.errors import unknown


def test_unknown_names_near_matches_whatever_their_case() -> None:
    assert "did you mean 'Pong'?" in str(unknown("game", "pogn", ["Pong", "Boxing"]))
