"""What the tests of counterparts share: provenance for a table of their own, and the scoreboard's rows by place."""

from workbench.paper.scoreboard import scoreboard

ABOUT = {"source": "measured", "scale": "minutes", "cores": 2, "date": "2026-01-01T00:00:00"}


def verdicts(root, paper: str, where: str) -> dict[str, tuple]:
    """Give verdict and value of ours by what stands in a place of a paper; of a claim with several, the last's."""
    return {
        row.number.what: (row.verdict, row.ours.value if row.ours else None)
        for row in scoreboard(root, paper)
        if row.number.where == where
    }
