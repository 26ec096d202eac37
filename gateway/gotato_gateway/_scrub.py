"""What a server says, made fit for an error message: no key, no piece of the prompt, one short line.

The rule: only the server's own `message` is used, never its whole body. Out of it goes (1) every piece of a secret of
six characters or more, and what is left of one that the server masked; (2) every text of the request that it quotes as
a whole; (3) everything it puts in quotes that occurs in a text of the request; (4) every run of some twenty characters
that occurs in one. Then it is cut to 300 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

LONGEST = 300
_READ = 600
_PIECE = 6
_WINDOW = 12
_QUOTED = re.compile(r"'([^'\n]{4,})'|\"([^\"\n]{4,})\"|`([^`\n]{4,})`|“([^”\n]{4,})”")
_MASKED = re.compile(r"[\w-]*(?:\*{2,}|\.{3,}|…|[xX•]{6,})[\w-]*")


def scrub(said: str, secrets: Iterable[str] = (), texts: Iterable[str] = ()) -> str:
    """One line of at most 300 characters. `secrets` are keys; `texts` is what the request holds of the user's."""
    line = " ".join(said[:_READ].split())
    for secret in secrets:
        line = _without_secret(line, secret)
    if line:
        line = _without_quotes(line, [text for text in texts if len(text) >= 4])
    line = "".join(c if c.isprintable() else "\ufffd" for c in line)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _without_secret(line: str, secret: str) -> str:
    if len(secret) < _PIECE:
        return line.replace(secret, "[key]") if secret else line
    line = line.replace(secret, "[key]")
    start = 0
    while start + _PIECE <= len(secret):
        end = start + _PIECE
        if secret[start:end] in line:
            while end < len(secret) and secret[start : end + 1] in line:
                end += 1
            line = line.replace(secret[start:end], "[key]")
        start += 1
    return _MASKED.sub(lambda found: "[key]" if _shows(found[0], secret) else found[0], line)


def _shows(masked: str, secret: str) -> bool:
    """Whether a masked word begins or ends like the secret ("sk-T***", "…9f3a")."""
    ends = re.split(r"\*{2,}|\.{3,}|…|[xX•]{6,}", masked)
    return (len(ends[0]) >= 2 and secret.startswith(ends[0])) or (len(ends[-1]) >= 2 and secret.endswith(ends[-1]))


def _without_quotes(line: str, texts: Sequence[str]) -> str:
    for text in sorted({" ".join(text.split()) for text in texts if len(text) <= 2 * _READ}, key=len, reverse=True):
        if len(text) >= 4:
            line = line.replace(text, "[…]")
    for found in list(_QUOTED.finditer(line)):
        quoted = next(group for group in found.groups() if group is not None)
        if any(quoted in text for text in texts):
            line = line.replace(quoted, "[…]")
    cuts = sorted(_common_runs(line, texts), reverse=True)
    for start, end in cuts:
        line = line[:start] + "[…]" + line[end:]
    return line


def _common_runs(line: str, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the line repeats a text. Looks at every twelfth place only: a run of 23 characters covers one of them."""
    start, done = 0, 0
    while start + _WINDOW <= len(line):
        window = line[start : start + _WINDOW]
        text = next((text for text in texts if window in text), None)
        if text is None:
            start += _WINDOW
            continue
        low, high = start, start + _WINDOW
        while low > done and line[low - 1 : high] in text:
            low -= 1
        while high < len(line) and line[low : high + 1] in text:
            high += 1
        if high - low >= 2 * _WINDOW - 4:
            yield low, high
            done = high
        start = max(high, start + _WINDOW)
