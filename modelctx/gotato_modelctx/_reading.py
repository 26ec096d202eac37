"""Files, read up to a bound: what is not shown is said, and nothing but a regular file is opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotAFile(OSError):
    """There is something at the path that is no regular file: reading a pipe or a device could wait for ever."""


def real_path(path: str | Path) -> Path:
    """Where a path leads, links followed; a circle of links stays as it is, and cannot be opened."""
    return Path(os.path.realpath(path))


def read_bounded(path: Path, most: int) -> tuple[bytes, int]:
    """The first `most` bytes of a file, and how large it is. A link at the path itself is followed by the caller only.

    Raises `OSError`: `FileNotFoundError`, `NotAFile`, or whatever the system says.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
    with open(handle, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFile(f"{path.name} is no regular file")
        data = file.read(most + 1)
    return data[:most], max(len(data), status.st_size)


def shown_text(data: bytes, most: int, size: int) -> str:
    """The text of at most `most` bytes, cut on a character's border, and a line that says what was left out.

    What is no UTF-8 becomes U+FFFD; a byte order mark is dropped.
    """
    cut = size > most
    kept = whole_characters(data[:most]) if cut else data
    text = kept.decode("utf-8", "replace").removeprefix("\ufeff")
    if not cut:
        return text
    return f"{text}\n{left_out(size - len(kept), size)}".lstrip("\n")


def left_out(missing: int, size: int) -> str:
    """The line that says what is not shown."""
    return f"[cut: {missing} of {size} bytes are left out here]"


def whole_characters(data: bytes) -> bytes:
    """The bytes without a character that is cut off at their end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data[:-back] if needed > back else data
    return data
