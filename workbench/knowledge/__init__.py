"""The knowledge base: an append-only event log and metrics in SQLite, read as documented frames.

One writer, any number of readers; people's requests come in by an inbox; recordings are Parquet.
"""

from workbench.knowledge.carry import carry
from workbench.knowledge.check import backup, check, repair
from workbench.knowledge.frames import Frames, frames_of
from workbench.knowledge.inbox import Controls, Inbox
from workbench.knowledge.lock import driver_of, holder_of, lock_path, output_path
from workbench.knowledge.reader import KnowledgeBase, RecordedStudy, RecordedTrial, names_taken
from workbench.knowledge.recording import Recording, record
from workbench.knowledge.remove import delete
from workbench.knowledge.writer import DiskFull, LogHeld, StudyLog

__all__ = [
    "Controls",
    "DiskFull",
    "Frames",
    "Inbox",
    "KnowledgeBase",
    "LogHeld",
    "RecordedStudy",
    "RecordedTrial",
    "Recording",
    "StudyLog",
    "backup",
    "carry",
    "check",
    "delete",
    "driver_of",
    "frames_of",
    "holder_of",
    "lock_path",
    "names_taken",
    "output_path",
    "record",
    "repair",
]
