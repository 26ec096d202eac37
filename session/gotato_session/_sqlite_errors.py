"""What SQLite's errors are told as."""

from __future__ import annotations

import sqlite3

from gotato_py import GotatoError, SessionCorrupt, StoreFailure

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's driver raises: of a damaged schema SQLite says a name, which need not be UTF-8 any more."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FSYNC = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)


def code_of(error: BaseException | None) -> int:
    """SQLite's extended code; 0 where it has none."""
    code: object = getattr(error, "sqlite_errorcode", 0)
    return code if isinstance(code, int) else 0


def is_locked(error: BaseException | None) -> bool:
    """Whether another connection was in the way."""
    return code_of(error) & 0xFF in _LOCKED


def is_damage(error: BaseException | None) -> bool:
    """Whether what was read is no database, or a damaged one."""
    return isinstance(error, UnicodeDecodeError) or code_of(error) & 0xFF in _DAMAGE


def is_absent(error: BaseException | None) -> bool:
    """Whether a file that is needed could not be opened or made."""
    return code_of(error) & 0xFF == sqlite3.SQLITE_CANTOPEN


def is_failed_fsync(error: BaseException | None) -> bool:
    """Whether the system could not say that what was written before is on the disk: after that it never will."""
    return code_of(error) in _FSYNC


def told(error: sqlite3.Error | UnicodeDecodeError, path: str, operation: str) -> GotatoError:
    """The error as one of ours. SQLite's own words name tables and causes, never what is stored."""
    if is_damage(error):
        text = f"{path} is damaged, or no database: {error}"
        return SessionCorrupt(text, operation=operation, cause=error)
    if is_locked(error):
        text = f"the database {path} is locked: another process has been writing to it all the time"
        return StoreFailure(text, operation=operation, retryable=True, cause=error)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreFailure(f"the database {path} failed: {error} ({name})", operation=operation, cause=error)
