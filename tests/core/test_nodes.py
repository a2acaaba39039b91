import pytest

from workbench.core.nodes import joined_nodes, nodes_of


@pytest.mark.parametrize(
    ("nodes", "joined"),
    [(["a"], "a"), (["a", "b", "a"], "a+b"), (["n1", "n2", "n3", "n4", "n5"], "n1…n5 (5)")],
)
def test_a_name_has_every_node_once_and_of_many_the_first_and_the_last(nodes, joined):
    assert joined_nodes(nodes) == joined


@pytest.mark.parametrize("n", range(1, 8))
def test_a_name_says_how_many_nodes_there_are(n):
    nodes = [f"node {k}" for k in range(n)]
    back = nodes_of(joined_nodes(nodes))
    assert len(set(back)) == n
    assert n > 4 or back == nodes
