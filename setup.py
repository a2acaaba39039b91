"""What `pyproject.toml` cannot say: the recorded data and the notebooks, which stand beside the package, go into it."""

from pathlib import Path
from shutil import copy2

from setuptools import setup
from setuptools.command.build_py import build_py

_LEFT_OUT = ("data", "runs")  # one's own studies


class BuildWithData(build_py):
    """Build the package as it is installed: `workbench/data` and `workbench/notebooks` are copies of the checkout's."""

    def run(self) -> None:
        """Build, then copy; an editable install finds both in the checkout."""
        super().run()
        if self.editable_mode:
            return
        for file in (path for folder in ("data", "notebooks") for path in sorted(Path(folder).rglob("*"))):
            hidden = any(part.startswith(".") for part in file.parts)
            if file.is_file() and not hidden and file.parts[:2] != _LEFT_OUT:
                target = Path(self.build_lib, "workbench", file)
                target.parent.mkdir(parents=True, exist_ok=True)
                copy2(file, target)


setup(cmdclass={"build_py": BuildWithData})
