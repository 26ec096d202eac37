"""Writing to stdout and stderr: whole lines, flushed at once, and a way to fail that is not a traceback."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from ._interrupts import Interrupts

_WIDTH = 120


class CannotWrite(Exception):
    """Stdout or stderr takes no more; `broken_pipe` says whether its reader is just gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or type(error).__name__)
        self.broken_pipe = isinstance(error, BrokenPipeError)


class Output:
    """Data goes to stdout, everything for people to stderr."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._line_open = False
        interrupts.before_leaving = self._close_line_raw
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")  # a terminal that lacks a character must not end the run

    def text(self, piece: str) -> None:
        """Writes a piece of the answer to stdout, as it comes."""
        if piece:
            self._line_open = not piece.endswith("\n")
            self._write(sys.stdout, piece)

    def end_line(self) -> None:
        """Ends the line on stdout, if one is open."""
        if self._line_open:
            self.text("\n")

    def json_line(self, data: Mapping[str, object]) -> None:
        """Writes one line of JSON to stdout."""
        encoding: str = getattr(sys.stdout, "encoding", None) or ""
        in_unicode = encoding.lower().replace("-", "") == "utf8"
        self._write(sys.stdout, json.dumps(data, ensure_ascii=not in_unicode) + "\n")

    def line(self, text: str) -> None:
        """Writes a line of data that is no JSON to stdout."""
        self._write(sys.stdout, f"{text}\n")

    def lines(self, text: str) -> None:
        """Writes lines of data to stdout, without what a terminal could take for a command."""
        self._write(sys.stdout, "".join([f"{_printable(line)}\n" for line in text.split("\n")]))

    def note(self, text: str, *, width: int = _WIDTH) -> None:
        """Writes one bounded line for people to stderr, without what a terminal could take for a command."""
        line = _printable(text)
        self._write(sys.stderr, (line if len(line) <= width else f"{line[: width - 1]}…") + "\n")

    def problem(self, text: str) -> None:
        """Writes what is wrong, and what to do, to stderr."""
        self.note(f"gotato: {text}", width=1000)

    def _write(self, stream: TextIO | None, text: str) -> None:
        if stream is None:  # the caller closed it
            return

        try:
            self._interrupts.write(lambda: _write_whole(stream, text))
        except OSError as error:
            _hush(stream)
            raise CannotWrite(error) from error

    def _close_line_raw(self) -> None:
        if self._line_open and sys.stdout is not None:
            os.write(1, b"\n")


def _printable(text: str) -> str:
    return "".join([each if each.isprintable() else " " for each in text])


def _write_whole(stream: TextIO, text: str) -> None:
    """Writes all of it. Under PYTHONUNBUFFERED the text layer loses what a signal kept the system from taking."""
    left = memoryview(text.encode(stream.encoding, stream.errors or "strict"))
    while left:
        taken = stream.buffer.write(left)
        if not taken:  # None, where a stream that must not block is full
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[taken:]
    stream.flush()


def _hush(stream: TextIO) -> None:
    """Leads what is still in the stream's buffer to nowhere, so that the interpreter does not complain at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
