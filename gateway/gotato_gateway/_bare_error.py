"""An error that a server writes into an event stream without making an event of it.

Google's servers end a stream that they give up with a JSON object on bare lines, over several of them, and close it in
good order; llama.cpp's of 2025 write it behind a field of their own, `error: {...}`. By the rules of event streams such
lines are unknown fields and skipped, and with them why it ended.
"""

from __future__ import annotations

from ._json import obj, parse_lenient

_FIELD = b"error:"
_LONGEST, _MOST_TRIES = 16384, 64


class BareError:
    """Takes the lines that are no fields, in their order; gives back the text of an error object that they complete."""

    __slots__ = ("_lines", "_size", "_tries")

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = self._tries = 0

    def add(self, line: bytes) -> str:
        """The whole object, "" while there is none. Lines that begin none, comments and endless ones are skipped."""
        if line.startswith(_FIELD):
            line = b'{"error":' + line.removeprefix(_FIELD) + b"}"
        if line.startswith(b":") or (not self._lines and not line.startswith(b"{")):
            return ""
        self._lines.append(line)
        self._size += len(line)
        if self._size > _LONGEST:
            self._forget()
        if not line.rstrip().endswith(b"}"):
            return ""
        self._tries += 1
        if self._tries > _MOST_TRIES:  # each looks at all lines again
            self._forget()
            return ""
        text = b"\n".join(self._lines).decode("utf-8", "replace")
        try:
            said = obj(parse_lenient(text))
        except ValueError:  # not whole yet
            return ""
        self._forget()
        return text if said.get("error") else ""

    def _forget(self) -> None:
        self._lines = []
        self._size = self._tries = 0
