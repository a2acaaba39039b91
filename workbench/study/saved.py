"""Where a study's checkpoints are, and whose: found, claimed for one study, kept apart from others'."""

import os
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from workbench.core import record
from workbench.core.errors import CheckpointError, InvalidInput, StudyError
from workbench.core.ledger import Ledger
from workbench.core.places import beside, in_home, private_folder, real_path
from workbench.core.protocols import BEGUN, Event

if TYPE_CHECKING:
    from workbench.cluster.checkpoints import CheckpointStore
    from workbench.knowledge import RecordedStudy
    from workbench.study.study import Study


def checkpoint_store(db: str | Path, name: str, elsewhere: str | None = None) -> "CheckpointStore":
    """Give a study's checkpoints: beside its knowledge base, following links, unless they were put elsewhere."""
    from workbench.cluster.checkpoints import CheckpointStore

    own = beside(db, f"{real_path(db).stem}.checkpoints") / name
    return CheckpointStore(in_home(elsewhere) if elsewhere else str(own))


def store_of(db: str | Path, study: "RecordedStudy", named: str | None = None) -> "CheckpointStore | None":
    """Give a recorded study's checkpoints, where its last driver had them if no place is named.

    ``None`` for a simulated one, which has none: those under its name are of a real study, as kb.db and kb.sqlite have
    one place.
    """
    if study.spec.get("simulated"):
        return None
    return checkpoint_store(db, study.name, named or record.recorded_place(study.events(*BEGUN)))


def _anothers_place(place: str, name: str, cure: str = "") -> StudyError:
    """Say that another study's checkpoints go to a place."""
    cure = cure or f"give study {name!r} a place of its own, or remove that file if the other study is gone"
    return StudyError(f"{place} is another study's place of checkpoints, as {place}/.study says: {cure}")


def refuse_anothers(place: str, db: str | Path, name: str, identity: str = "", cure: str = "") -> None:
    """Refuse a place that was named for a study's checkpoints if it is another's, by its mark or by where it is.

    Parameters
    ----------
    place, db, name : str
    identity : str
        The study's, if it has one yet.
    cure : str
        What to do instead of giving the study a place of its own.

    Raises
    ------
    StudyError
    """
    from workbench.cluster.place import Place

    _refuse_beside(place, db, name, cure)
    if Place(place).owner() not in ("", identity):
        raise _anothers_place(place, name, cure)


def _refuse_beside(place: str, db: str | Path, name: str, cure: str) -> None:
    """Refuse the place beside a knowledge base, which has no mark, of the study that is called as its folder is."""
    at = Path(os.path.realpath(place))
    if "://" in place or at == Path(checkpoint_store(db, name).root) or at.parent.suffix != ".checkpoints":
        return
    own = at.parent.with_suffix("")  # as `checkpoint_store` has it
    if any(file.stem == own.name and file.is_file() for file in own.parent.glob("*")):
        raise StudyError(
            f"{place} is where study {at.name!r} of {own.name}, the knowledge base beside it, has its checkpoints: "
            + (cure or f"give study {name!r} a place of its own")
        )


def check_whose(place: str, db: str | Path, study: "RecordedStudy") -> None:
    """Refuse a place of checkpoints to read or remove if it is another's; raises as `refuse_anothers`."""
    refuse_anothers(place, db, study.name, study.identity, f"name that of study {study.name!r}")


def silence_told(place: str) -> AbstractContextManager[None]:
    """Warn meanwhile if a place gives no answer for seconds: the libraries behind a URL may wait for half an hour."""
    from workbench.cluster.place import heard_of

    return heard_of(partial(warnings.warn, f"the place of checkpoints {place} gives no answer yet: waiting for it"))


def refuse_used_place(study: "Study") -> None:
    """Refuse to begin a study where checkpoints of another are, or will be."""
    from workbench.cluster.place import Place

    place = study.checkpoints or study.checkpoint_store.root  # kb.db and kb.sqlite have one place
    if Place(place).holds_any():
        raise StudyError(
            f"{place} holds checkpoints already, which would mix with those of study {study.name!r}: "
            "give it a place of its own, or remove them"
        )
    if study.checkpoints is not None:
        refuse_anothers(place, study.db, study.name)
    _make_place(study)


def _make_place(study: "Study") -> None:
    """Make the folder that was named, or refuse it: to save there fails once the first phase has been trained.

    A URL may be out of reach for a while; what the workers of a client see, this process may not.
    """
    place = study.checkpoints
    if place is None or "://" in place or study.client is not None:
        return
    try:
        private_folder(Path(place))
        why = "" if os.access(place, os.W_OK | os.X_OK) else "Permission denied"
    except FileExistsError as err:
        why = f"{err.filename} is a file"
    except OSError as err:
        why = err.strerror or type(err).__name__
    if why:
        raise InvalidInput(f"checkpoints cannot be kept at {place} ({why}): name another directory")


def refuse_without_checkpoints(study: "Study", past: Sequence[Event], ledger: Ledger) -> None:
    """Refuse to go on without the checkpoints there are: every trial would begin again from its start.

    Of those that are gone for good an empty folder in their place says so.
    """
    from workbench.cluster.place import Place

    here = study.checkpoint_store.root
    if not record.has_checkpoints(past) or Place(here).holds_any() is not False:
        return
    place = record.recorded_place(past)
    last = checkpoint_store(study.db, study.name, place).root
    if study.checkpoints is None and place:
        raise StudyError(f"study {study.name!r} has its checkpoints at {place}: resume it with checkpoints={place!r}")
    if here != last:
        how = f"with checkpoints={last!r}" if place else "without checkpoints=…"
        raise StudyError(
            f"{here} holds no checkpoints, and study {study.name!r} last had its own at {last}: resume it {how}, or "
            "bring them there first"
        )
    seen = "://" not in here and (place is None or study.client is None)  # as of `_make_place`
    goes_on = any(trial.checkpoint and not trial.state.over for trial in ledger.trials.values())
    if seen and goes_on and not Path(here).exists():
        raise StudyError(
            f"study {study.name!r} goes on from checkpoints in {here}, which is not there: bring that folder back, "
            "under this name, or, if they are gone, make an empty one, and its trials begin again from their start"
        )


def claim_place(study: "Study", identity: str) -> IO[str] | None:
    """Take a place for this study alone, and for one driver of it: as long as what `hold_place` gives is open.

    Another may have begun at one that was named, and not have saved anything. That beside the knowledge base gets no
    mark: two studies share it only if they are called alike in kb.db and in kb.sqlite, and a mark would outlive a
    knowledge base that is thrown away.
    """
    from workbench.cluster.place import Place

    if study.checkpoints is not None:
        refuse_anothers(study.checkpoints, study.db, study.name, identity)
    _make_place(study)
    if study.checkpoints is not None and Place(study.checkpoints).claim(identity) not in ("", identity):
        raise _anothers_place(study.checkpoints, study.name)  # it has just begun there
    root = study.checkpoint_store.root
    if "://" not in root:
        with suppress(OSError):  # which is told once something is saved
            private_folder(Path(root))
    return hold_place(root)


def hold_place(root: str) -> IO[str] | None:
    """Lock a folder of checkpoints for one driver: a copy of a knowledge base has other locks, and the same place.

    ``None`` where no lock can be had: at a URL, in a folder that is not there, on a file system that knows none.

    Raises
    ------
    StudyError
        A study is being driven there.
    """
    from workbench.cluster.place import DRIVER
    from workbench.knowledge.lock import hold

    def taken(holder: str) -> StudyError:
        return StudyError(f"the study that has its checkpoints at {root} is driven by {holder}: stop that driver first")

    if "://" not in root:
        with suppress(OSError):
            return hold(Path(root, DRIVER), taken)
    return None


def remove_checkpoints(store: "CheckpointStore | None") -> None:
    """Remove what `store_to_delete` gave, unless a copy is driven with it; raises as `hold_place`, `Place.remove`."""
    if store is not None:
        with hold_place(store.root) or nullcontext():
            store.remove()


def pin_parents(study: "Study", ledger: Ledger) -> None:
    """Keep what trials under way start from, before any trial goes on: a parent that is first removes what is older."""
    for name in record.started_from(ledger):
        with suppress(Exception):  # as where the executor starts them: the newest two are kept
            study.checkpoint_store.pin(name)


def store_to_delete(db: str | Path, study: "RecordedStudy", named: str | None) -> "CheckpointStore | None":
    """Give the checkpoints that go with a study that is deleted; ``None`` where none do.

    What stands beside the knowledge base has no mark, and goes only if the log names any: kb.db and kb.sqlite have one
    place.

    Parameters
    ----------
    db : path
    study : RecordedStudy
    named : str, optional
        Where they are said to be.

    Raises
    ------
    StudyError
        They are another's, or a place is named of a simulated study.
    CheckpointError
        The study would be deleted, but not its checkpoints, see `_refuse_to_leave`.
    """
    from workbench.cluster.place import Place

    store = store_of(db, study, named)
    if store is None:
        if named:
            raise StudyError(
                f"study {study.name!r} was simulated, and has no checkpoints: delete it without naming a place"
            )
        return None
    events = study.events()
    check_whose(store.root, db, study)
    _refuse_to_leave(db, study.name, events, named)
    own = named or record.recorded_place(events) or record.has_checkpoints(events)
    return store if own or not Place(store.root).holds_any() else None


def _refuse_to_leave(db: str | Path, name: str, events: Sequence[Event], named: str | None) -> None:
    """Refuse to delete a study but not its checkpoints: they are on a disk that is not there now, or not where is said.

    A URL that cannot be reached tells so itself.
    """
    from workbench.cluster.place import Place

    place = record.recorded_place(events)
    if named:
        last = checkpoint_store(db, name, place).root
        if checkpoint_store(db, name, named).root != last and Place(last).holds_any():
            raise CheckpointError(f"study {name!r} has its checkpoints at {last}: delete it without naming a place")
    elif place and record.has_checkpoints(events) and "://" not in place and not Path(place).exists():
        raise CheckpointError(
            f"study {name!r} has its checkpoints at {place}, which is not there: bring it back, or, if they are gone, "
            f"say so with checkpoints={place!r}"
        )
