"""Run a notebook without a browser, from the first cell to the last, showing what it prints as it prints it."""

import ast
import asyncio
import base64
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from workbench.core.errors import InvalidInput, WorkbenchError
from workbench.core.places import DEFAULT_DB, NOTEBOOKS, whole_file

_EVERY_S = 10.0  # between two lines of a progress bar
_FIGURE = "application/vnd.plotly.v1+json"
# a kernel that ends may close a socket under its own control thread, which then tells a traceback of no use to anybody
_QUIET = "__import__('logging').getLogger('tornado.general').setLevel('CRITICAL')"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class NotebookError(WorkbenchError):
    """A cell of the notebook failed."""


class NotebookInterrupted(WorkbenchError):
    """Somebody ended it before its last cell."""


def execute(path: str | Path, out: str | Path | None = None, parameters: Mapping[str, str] | None = None) -> Path:
    """Execute a notebook in the folder it stands in, and keep the executed copy.

    Parameters
    ----------
    path : path
        The notebook; it is not changed.
    out : path, optional
        Where the copy goes; by default ``data/runs/`` of the working directory, or, of the notebooks that come with
        the project, beside their folder.
    parameters : Mapping of str to str
        Values, as Python literals, for names assigned in the cell tagged ``parameters``.

    Returns
    -------
    Path
        The executed copy.

    Raises
    ------
    NotebookError
        A cell failed; the copy is kept as far as it came.
    NotebookInterrupted
        By Ctrl-C or SIGTERM, as the running cell was; a second one ends the kernel. The copy is kept as far as it came.
    """
    source = Path(path)
    notebook = read_notebook(source)
    _set_parameters(notebook, parameters or {})
    target = Path(out) if out else default_place(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInput(f"{target} is no file to write the executed copy to: name another place, --out FILE")
    client = _Talking(
        notebook,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=40", f"--IPKernelApp.exec_lines={_QUIET}"],  # errors only
        timeout=None,
        store_widget_state=False,
        resources={"metadata": {"path": source.parent}},
    )
    try:
        client.execute()
    except (CellExecutionError, DeadKernelError, NotebookInterrupted) as err:
        if client.interrupted or isinstance(err, NotebookInterrupted):
            raise NotebookInterrupted(f"{source} was interrupted: {target} has it as far as it came") from None
        if isinstance(err, DeadKernelError):
            why = "look for lack of memory or a crash in native code"
            raise NotebookError(f"the kernel of {source} died: {why}") from None
        raise NotebookError(f"{_failed(notebook, source, err)}; {target} has it as far as it came") from None
    finally:
        try:
            add_pictures(notebook)
        except InvalidInput as err:
            print(f"its figures have no pictures beside them: {err}", file=sys.stderr)
        replace_notebook(target, notebook)
    return target


def _failed(notebook: Any, source: Path, err: CellExecutionError) -> str:
    """Name the cell that failed, by the number in its margin, and its error; the traceback is in the copy."""
    failed = (c for c in notebook.cells if any(o.output_type == "error" for o in c.get("outputs", [])))
    number = next((c.execution_count for c in failed), None)
    return f"cell [{number or ' '}] of {source} failed: {err.ename}: {_ANSI.sub('', err.evalue)}"


def default_place(source: Path) -> Path:
    """Name where the executed copy of a notebook goes; never over the notebook itself."""
    folder = NOTEBOOKS.parent if source.resolve().is_relative_to(NOTEBOOKS.resolve()) else Path()
    target = folder / DEFAULT_DB.with_name(source.name)
    if target.resolve() == source.resolve():
        raise InvalidInput(f"{source} would be replaced by its executed copy: name another place, --out FILE")
    return target


def replace_notebook(path: Path, notebook: Any) -> None:
    """Write a notebook over what is there, whole or not at all."""
    with whole_file(path) as part:
        nbformat.write(notebook, part)


def read_notebook(path: str | Path) -> Any:
    """Read a notebook; raises `InvalidInput` where it is none."""
    try:
        return nbformat.read(path, as_version=4)
    except OSError:
        raise
    except Exception as err:  # noqa: BLE001  whatever its readers make of what is no notebook
        raise InvalidInput(f"{path} cannot be read as a notebook ({' '.join(str(err).split())[:100]})") from None


def add_pictures(notebook: Any) -> int:
    """Put a picture beside every figure that has none, for pages that do not know plotly: GitHub's, nbconvert's.

    Returns
    -------
    int
        How many were drawn.

    Raises
    ------
    InvalidInput
        No browser is at hand that could draw them.
    """
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    bare = [data for output in outputs if _FIGURE in (data := output.get("data", {})) and "image/png" not in data]
    if not bare:
        return 0
    from workbench.viz.figures.export import pictures

    drawn = pictures([json.dumps(data[_FIGURE]) for data in bare])
    for data, picture in zip(bare, drawn, strict=True):
        data["image/png"] = base64.b64encode(picture).decode()
    return len(drawn)


class _Talking(NotebookClient):
    """Writes printed output to standard output as it comes; a progress bar now and then, and as its cell leaves it.

    A signal interrupts the running cell, as a button of JupyterLab does.
    """

    interrupted = False
    _over = False  # a cell has failed, as one that is interrupted does: the library ends the kernel
    _quiet_until = 0.0

    def __init__(self, *args: Any, **settings: Any) -> None:
        self._unsaid: dict[str, str] = {}  # display → its text as it is, where that has not been written yet
        settings |= {"on_notebook_start": self._listen, "on_cell_start": self._go_on, "on_cell_error": self._fail}
        super().__init__(*args, **settings)

    async def _listen(self, notebook: Any) -> None:
        """Take the signals over: the library would end the kernel, and then stumble over its being gone."""
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt)

    def _interrupt(self) -> None:
        if self._over:  # twice at once it cannot be ended
            return
        kernel: Any = self.km
        self._ending = asyncio.ensure_future(
            kernel.shutdown_kernel(now=True) if self.interrupted else kernel.interrupt_kernel()
        )
        self.interrupted = True

    async def _fail(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        self._over = True

    async def _go_on(self, cell: Any, cell_index: int) -> None:
        if self.interrupted:  # the last cell went on all the same
            raise NotebookInterrupted

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] == "stream":
            sys.stdout.write(msg["content"]["text"])
            sys.stdout.flush()
        elif msg["msg_type"] == "update_display_data":
            content = msg["content"]
            self._unsaid[content.get("transient", {}).get("display_id", "")] = (
                content["data"].get("text/plain", "") + "\n"
            )
        over = msg["msg_type"] == "status" and msg["content"]["execution_state"] == "idle"
        if self._unsaid and (over or time.monotonic() >= self._quiet_until):
            sys.stdout.writelines(self._unsaid.values())
            sys.stdout.flush()
            self._unsaid, self._quiet_until = {}, time.monotonic() + _EVERY_S
        return super().process_message(msg, cell, cell_index)


def _set_parameters(notebook: Any, parameters: Mapping[str, str]) -> None:
    """Append assignments to the cell tagged ``parameters``, for names it assigns already."""
    if not parameters:
        return
    cell = next((c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])), None)
    if cell is None:
        raise InvalidInput("the notebook has no cell tagged 'parameters': it cannot be given any")
    known = _assigned(cell.source)
    for name, value in parameters.items():
        if name not in known:
            raise InvalidInput(f"the notebook has no parameter {name!r}: it has {', '.join(known)}")
        try:
            literal = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            literal = value
        cell.source += f"\n{name} = {literal!r}"


def _assigned(source: str) -> list[str]:
    """Name what a cell assigns; lines of IPython's own, such as ``%matplotlib inline``, may stand beside."""
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        cell = ast.parse(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    except SyntaxError as err:
        raise InvalidInput(f"the cell tagged 'parameters' is no Python ({err}): it cannot be given any") from None
    targets: list[ast.expr] = []
    for node in cell.body:
        targets += node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AnnAssign) else []
    parts = (part for target in targets for part in ast.walk(target))  # of ``a, b = 1, 2`` both
    return [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
