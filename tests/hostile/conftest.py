from tests.cluster.conftest import executor_of

__all__ = ["executor_of"]
