"""Makes a journal file smaller: leaves out what no longer counts."""

from __future__ import annotations

from ._file_journal import read_file
from ._file_lock import fenced
from ._file_manner import Manner
from ._file_names import Names
from ._file_opening import open_writer
from ._file_rewrite import file_of, replace
from ._file_scan import Scan, scan
from .journal import JSONObject
from .lease import default_owner


def vacuum(names: Names, since: float, manner: Manner) -> int:
    """Rewrites the file without events and replaced metadata; returns the bytes that it is shorter by.

    Messages, marks, runs, labels, branch moves and settlements all stay: which of them counts depends on where the
    session branches to. Entries are numbered anew; entries of one commit stay one.
    """
    journal = open_writer(names, default_owner(), since, manner, steal=False)
    try:
        with fenced(names, journal.handle):
            data = read_file(names)
            content = _less(scan(data, names.id, manner.form))
            freed = len(data) - len(content)
            if freed > 0:
                replace(names, content, manner.disk).let_go()
            return max(0, freed)
    finally:
        journal.close()


def _less(found: Scan) -> bytes:
    head, *entries = found.entries
    newest = max((each["seq"] for each in entries if each.get("type") == "metadata"), default=0)
    commits: list[list[JSONObject]] = [[]]
    for entry in entries:
        replaced = entry.get("type") == "metadata" and entry["seq"] != newest
        if entry.get("type") != "event" and not replaced:
            commits[-1].append(entry)
        if entry["seq"] not in found.joined:
            commits.append([])
    return file_of(head, [each for each in commits if each])
