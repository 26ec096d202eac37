"""Server-sent events, read incrementally from bytes.

The format is the "text/event-stream" section of the WHATWG HTML standard, read as leniently as it says: lines end in
LF, CR or CRLF, a space after the colon is optional, comments and unknown fields are skipped, a BOM is dropped. The
encoding is UTF-8 whatever the Content-Type says. Three things differ on purpose: an event that the end of the body cuts
off is delivered (servers forget the last blank line) unless it is JSON that goes no further, one with empty data is
not, and a JSON object on bare lines that says `error`, or behind such a field, is an event of that name.
"""

from __future__ import annotations

from typing import NamedTuple

from ._bare_error import BareError
from ._json import parse_lenient

_BOM = b"\xef\xbb\xbf"
_LF = 10


class ServerEvent(NamedTuple):
    """One event: its name ("" if it has none) and its data."""

    event: str
    data: str


class SSEReader:
    """Takes the body in pieces of any size and gives back the events that they complete.

    Every byte is looked at a bounded number of times: an unfinished line is kept as a list of pieces and joined once.
    """

    __slots__ = ("_after_cr", "_bare", "_data", "_event", "_first_line", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._event = b""
        self._after_cr = False
        self._first_line = True
        self._bare = BareError()

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that this piece of the body completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == _LF:  # the second half of a CRLF that two pieces share
                chunk = chunk[1:]
        lines = chunk.splitlines()  # on bytes, this splits at LF, CR and CRLF only
        if not lines:
            return []
        if not chunk.endswith((b"\n", b"\r")):
            rest = lines.pop()
            if not lines:
                self._pieces.append(rest)
                return []
        else:
            rest = b""
            self._after_cr = chunk.endswith(b"\r")
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
        self._pieces = [rest] if rest else []
        return self._read(lines)

    def finish(self) -> list[ServerEvent]:
        """The event that the end of the body leaves open, if any."""
        lines = [b"".join(self._pieces), b""] if self._pieces else [b""]
        self._pieces = []
        return [event for event in self._read(lines) if not _is_torn(event.data)]

    def _read(self, lines: list[bytes]) -> list[ServerEvent]:
        if self._first_line:
            self._first_line = False
            lines[0] = lines[0].removeprefix(_BOM)
        events: list[ServerEvent] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data and (data := b"\n".join(self._data)):
                    events.append(ServerEvent(self._event.decode("utf-8", "replace"), data.decode("utf-8", "replace")))
                self._data, self._event = [], b""
            elif line.startswith(b"event:"):
                self._event = line[7:] if line.startswith(b"event: ") else line[6:]
            elif line == b"data":
                self._data.append(b"")
            elif error := self._bare.add(line):
                events.append(ServerEvent("error", error))
        return events


def _is_torn(data: str) -> bool:
    """Whether this is JSON that ends too early. "[DONE]" is none; half of it is."""
    said = data.strip()
    if not said.startswith(("{", "[")) or said == "[DONE]":
        return False
    try:
        parse_lenient(said)
    except ValueError:
        return True
    return False
