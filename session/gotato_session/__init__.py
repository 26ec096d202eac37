"""Transcripts that last: `Session`, the stores that keep sessions, and `record`, an observer that keeps events in one.

A session is what happened, in order: messages, marks of work in progress, compactions, runs, branches, labels, events.
"""

from gotato_py import LeaseLost

from ._recorder import Recorder
from .exporting import export_session, import_session
from .file_store import FileStore
from .journal import Journal
from .lease import Lease
from .memory_store import MemoryStore
from .readable import to_html, to_markdown
from .recording import record
from .session import Session
from .sqlite_store import SearchHit, SQLiteStore
from .stats import SessionStats
from .store import Store, StoreBase
from .summary import SessionSummary

__all__ = [
    # sessions
    "Session",
    "record",
    "Recorder",
    "SessionStats",
    # stores
    "Store",
    "MemoryStore",
    "FileStore",
    "SQLiteStore",
    "SearchHit",
    "SessionSummary",
    "Lease",
    "LeaseLost",
    # carried elsewhere, and read by people
    "export_session",
    "import_session",
    "to_markdown",
    "to_html",
    # for authors of stores
    "StoreBase",
    "Journal",
]
