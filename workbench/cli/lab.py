"""The command ``workbench lab``: JupyterLab on the studies of a knowledge base, alive when it opens."""

import argparse
import re
from functools import partial
from pathlib import Path
from typing import Any

from workbench.cli.options import add_db

_TAG = "home"  # of the cell that shows them
_AS_MADE = re.compile(r"""from workbench import home\n\nhome\((['"])(?:\\.|(?!\1)[^\\\n])*\1\)""")
"""What that cell says of any knowledge base, as long as nobody has changed it."""


def add_parsers(commands: Any) -> None:
    """Register the family's commands."""
    lab = commands.add_parser("lab", help="open JupyterLab on the studies of a knowledge base, on loopback")
    add_db(lab)
    lab.add_argument("--no-browser", action="store_true", help="only say the address")
    lab.add_argument("more", nargs="*", metavar="OPTION", help="what JupyterLab is told besides, after --")
    lab.set_defaults(command=_lab)


def _lab(arguments: argparse.Namespace) -> int:
    from workbench.knowledge import names_taken

    db, here = Path(arguments.db).absolute(), Path.cwd()
    names_taken(db)  # refuses what is there and is no knowledge base
    _notebook_of(db.parent / "home.ipynb", db.name)  # one that is damaged is told before anything runs
    from jupyterlab.labapp import LabApp
    from tornado.ioloop import IOLoop

    from workbench.core.places import private_folder

    private_folder(db.parent)
    root = here if db.is_relative_to(here) else db.parent
    page = (db.parent / "home.ipynb").relative_to(root).as_posix()
    options = [f"--ServerApp.root_dir={root}", "--ServerApp.ip=127.0.0.1", "--no-browser"]
    options += [f"--ServerApp.default_url=/lab/tree/{page}", *arguments.more]
    IOLoop.current().add_callback(partial(_prepare, page, db.name, opened=not arguments.no_browser))
    LabApp.launch_instance(options)
    return 0


async def _prepare(page: str, db: str, *, opened: bool) -> None:
    """Run the cell that shows the studies in a kernel of the page's own, which the page finds when it is opened."""
    from jupyter_server.serverapp import ServerApp
    from nbclient import NotebookClient

    app = ServerApp.instance()
    notebook, cell = _notebook_of(Path(app.root_dir) / page, db)
    name = page.rpartition("/")[2]
    session = await app.session_manager.create_session(path=page, name=name, type="notebook", kernel_name="python3")
    kernel = app.kernel_manager.get_kernel(session["kernel"]["id"])
    client = NotebookClient(notebook, km=kernel, store_widget_state=False, allow_errors=True)
    async with client.async_setup_kernel():
        await client.async_execute_cell(notebook.cells[cell], cell)
        if client.kc is not None:
            client.kc.stop_channels()
    contents: Any = app.contents_manager
    contents.notary.mark_cells(notebook, True)  # or the page would not show what it has not run
    await contents.save({"type": "notebook", "format": "json", "content": notebook}, page)
    if opened:
        app.launch_browser()


def _notebook_of(path: Path, db: str) -> tuple[Any, int]:
    """Read the page, or begin it; what people wrote in it stays. Give the number of the cell that shows the studies."""
    import nbformat

    from workbench.cli.headless import read_notebook

    notebook = read_notebook(path) if path.is_file() else nbformat.v4.new_notebook()
    source = f"from workbench import home\n\nhome({db!r})"
    for k, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and _TAG in cell.metadata.get("tags", []):
            if _AS_MADE.fullmatch(cell.source):  # by whoever looked at another knowledge base of this folder
                cell.source = source
            return notebook, k
    notebook.cells.insert(0, nbformat.v4.new_code_cell(source, metadata={"tags": [_TAG]}))
    notebook.metadata.setdefault("kernelspec", {"name": "python3", "display_name": "Python 3", "language": "python"})
    return notebook, 0
