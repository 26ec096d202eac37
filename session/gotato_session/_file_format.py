"""The version of a journal file, and how files of older versions are brought up to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gotato_py import NotSupported, SessionCorrupt

from ._file_lines import any_object
from .journal import JSONObject

Migration = Callable[[list[JSONObject]], list[JSONObject]]
"""All entries of a file, the head first, as the next version has them. Their numbers stay: forks go by them."""

VERSION_KEY = "gotato_session"


@dataclass(frozen=True, slots=True)
class Format:
    """The version that is written, and for each older one that is still read what makes the next of it."""

    version: int = 1
    migrations: Mapping[int, Migration] = field(default_factory=dict[int, Migration])

    def upgrade(self, entries: list[JSONObject]) -> list[JSONObject]:
        """The entries as this version has them."""
        for version in range(entries[0][VERSION_KEY], self.version):
            entries = self.migrations[version](entries)
            entries[0][VERSION_KEY] = version + 1
        return entries

    def check(self, entry: JSONObject, id: str) -> None:
        """Raises `NotSupported` for an entry that a newer release wrote."""
        version = entry.get("v", 1)
        if type(version) is not int or version > self.version:
            raise self._too_new(id, f"its entry {entry['seq']} is of version {str(version)[:20]}")

    def read_head(self, line: bytes, id: str) -> JSONObject:
        """The head on a file's first line, whatever its checksum says: a newer version may have another.

        Raises `SessionCorrupt` for what is no head of that session, `NotSupported` for one of a newer version.
        """
        head = any_object(line) or {}
        version = head.get(VERSION_KEY)
        if type(version) is not int or version < 1:
            raise SessionCorrupt(f"session {id!r}: the file's first line is not the head of a session", line=1)
        if version > self.version:
            raise self._too_new(id, f"the file is of version {version}")
        if any(each not in self.migrations for each in range(version, self.version)):
            raise NotSupported(f"session {id!r} is of version {version}, which this release no longer reads")
        if head.get("id") != id:
            text = f"session {id!r}: the file is that of the session {head.get('id')!r}; give it that session's name"
            raise SessionCorrupt(text, line=1)
        return head

    def _too_new(self, id: str, what: str) -> NotSupported:
        return NotSupported(f"session {id!r}: {what}, this release knows {self.version}; open it with a newer one")
