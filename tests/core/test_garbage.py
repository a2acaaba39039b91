import gc

import pytest

from workbench.core.garbage import uncollected


def fail_uncollected() -> None:
    with uncollected():
        raise ValueError(f"collecting: {gc.isenabled()}")


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_left_as_it_was_found_even_by_an_error(was_on) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        with pytest.raises(ValueError, match="collecting: False"):
            fail_uncollected()
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()
