import pytest

from workbench.cluster.local import local_client


@pytest.fixture(scope="session")
def client():
    """Two real worker processes under nannies, shared by the tests; they may be killed, nannies bring them back."""
    with local_client(2) as client:
        yield client
