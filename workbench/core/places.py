"""Where data are: the project's own small files and recordings, and the knowledge base unless another is named."""

from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]
# the recordings come with a checkout, not with the installed package; what that records goes where it is used
DATA = _CHECKOUT / "data" if (_CHECKOUT / "pyproject.toml").is_file() else Path("data").absolute()
"""The folder of data files and recordings."""

DEFAULT_DB = Path("data/runs/workbench.db")
"""The knowledge base, in the working directory."""


def private_folder(path: Path) -> Path:
    """Make a folder that nobody else may look into, whatever the umask, and those above that are missing."""
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)
    return path


def located(path: str | Path) -> Path:
    """Find a file by its path, or by its name among the project's data."""
    return Path(path) if Path(path).is_file() or not (DATA / path).is_file() else DATA / path
