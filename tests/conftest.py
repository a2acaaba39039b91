"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("shared machine", deadline=None)  # an example may take long where others compute too
settings.load_profile("shared machine")
