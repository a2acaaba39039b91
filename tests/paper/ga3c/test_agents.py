"""Agents on games of Table 3 beside what the paper's came to."""

import pytest

from workbench.paper.ga3c.agents import AGENTS, played, ways


def test_recorded_agents_stand_beside_the_paper_s_and_their_ways_end_near_what_they_came_to() -> None:
    table, lines = played(), ways()
    pong = table[table["game"] == "pong"]
    assert pong["mean"].tolist() == [19.333, 18.767, 19.567]
    assert pong["share"].iloc[0] == pytest.approx((19.333 + 18) / 36)
    assert set(pong["published"]) == {18}
    for game, line in lines.groupby("variant"):
        ends = line.groupby("seed").tail(1)
        (million_frames,) = {agent.million_frames for agent in AGENTS.values() if agent.game == game}
        assert ends["frames"].tolist() == pytest.approx([1e6 * million_frames] * len(ends), rel=0.01)
        assert ends["score"].mean() == pytest.approx(table.loc[table["game"] == game, "share"].mean(), abs=0.3)
