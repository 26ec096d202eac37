"""Damage to what stores keep, done behind their backs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def damage(folder: Path, kind: str, message_id: str) -> None:
    """Changes a byte of the entry of that message, behind the store's back."""
    old, new = f'"id":"{message_id}"', f'"id":"{message_id[0]}x"'
    if kind == "file":
        file = folder / "sessions" / "p.jsonl"
        file.write_bytes(file.read_bytes().replace(old.encode(), new.encode()))
        return
    with closing(sqlite3.connect(folder / "sessions.sqlite")) as connection, connection:
        connection.execute("UPDATE entries SET text = replace(text, ?, ?)", (old, new))
