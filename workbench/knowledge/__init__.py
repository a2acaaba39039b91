"""The knowledge base: an append-only event log and metrics in SQLite, read as documented frames."""

from workbench.knowledge.check import backup, check, repair
from workbench.knowledge.frames import Frames, frames_of
from workbench.knowledge.inbox import Hands, Inbox
from workbench.knowledge.reader import KnowledgeBase, RecordedStudy
from workbench.knowledge.recording import Recording, record
from workbench.knowledge.writer import DiskFull, StudyLog

__all__ = [
    "DiskFull",
    "Frames",
    "Hands",
    "Inbox",
    "KnowledgeBase",
    "RecordedStudy",
    "Recording",
    "StudyLog",
    "backup",
    "check",
    "frames_of",
    "record",
    "repair",
]
