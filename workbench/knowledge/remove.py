"""Taking a study out of a knowledge base, with all that its name stands for beside it."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from workbench.core.places import db_path
from workbench.knowledge.inbox import inbox_path
from workbench.knowledge.lock import claim, lock_path, output_path
from workbench.knowledge.reader import KnowledgeBase
from workbench.knowledge.schema import database_errors, open_for_writing
from workbench.knowledge.writer import transaction


def delete(path: str | Path, name: str, first: Callable[[], None] = lambda: None) -> None:
    """Remove a study for good: its events and metrics, what its driver wrote and was asked. Not its checkpoints.

    Parameters
    ----------
    path, name
        The study.
    first : callable
        Removes what only the log tells of, once nobody else drives the study: if it raises, the log is still there.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it, or it is being driven.
    """
    path = db_path(path)
    with KnowledgeBase(path) as kb:
        kb[name]  # there is one, or this says which there are
    driver = claim(path, name)
    try:
        with closing(open_for_writing(path)) as connection:
            first()
            with database_errors(path), transaction(connection):
                (study,) = connection.execute("SELECT id FROM studies WHERE name = ?", (name,)).fetchone()
                for table in ("metrics", "events"):
                    connection.execute(f"DELETE FROM {table} WHERE study = ?", (study,))
                connection.execute("DELETE FROM studies WHERE id = ?", (study,))
        shutil.rmtree(inbox_path(path, name), ignore_errors=True)
        output_path(path, name).unlink(missing_ok=True)
        lock_path(path, name).unlink(missing_ok=True)
    finally:
        driver.close()
