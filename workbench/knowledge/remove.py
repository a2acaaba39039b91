"""Taking a study out of a knowledge base, with all that its name stands for beside it."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from workbench.core.errors import StudyError
from workbench.core.places import db_path
from workbench.knowledge.inbox import inbox_path
from workbench.knowledge.lock import claim, lock_path, output_path
from workbench.knowledge.reader import KnowledgeBase
from workbench.knowledge.schema import database_errors, open_for_writing
from workbench.knowledge.writer import transaction


def delete(
    path: str | Path, name: str, first: Callable[[], None] = lambda: None, *, identity: str | None = None
) -> None:
    """Remove a study for good: its events and metrics, what its driver wrote and was asked. Not its checkpoints.

    Parameters
    ----------
    path, name
        The study.
    first : callable
        Removes what only the log tells of, once nobody else drives the study: if it raises, the log is still there.
    identity : str, optional
        The study's, as it was looked at: another that has come to its name since stays.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it, or it is being driven, or it is another.
    """
    path = db_path(path)
    with KnowledgeBase(path) as kb:
        kb[name]  # there is one, or this says which there are
    driver = claim(path, name)
    try:
        with KnowledgeBase(path) as kb:  # now nobody deletes it
            if identity not in (None, kb[name].identity):
                raise StudyError(
                    f"study {name!r} is not what was looked at: that was deleted meanwhile, and this one has its name: "
                    "look at it, and delete it then"
                )
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
