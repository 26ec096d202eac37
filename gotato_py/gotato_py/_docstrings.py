"""What a docstring says: the description, and each parameter's, from Google, NumPy and reStructuredText style."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "other parameters", "keyword args",
                         "keyword arguments", "attributes"})  # fmt: skip
_OTHERS = frozenset({"returns", "return", "yields", "yield", "raises", "raise", "exceptions", "warns", "examples",
                     "example", "note", "notes", "see also", "references", "warning", "warnings", "todo",
                     "methods", "receives"})  # fmt: skip
# Compiled by `re` at the first use: most programs parse few docstrings, and importing this must cost nothing.
_GOOGLE_HEADING = r"([A-Za-z ]+):\s*$"
_GOOGLE_ENTRY = r"\*{0,2}(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*:\s*(.*)"
_NUMPY_ENTRY = r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$"
_FIELD = r":(\w+)(?:\s+([^:]*))?:\s*(.*)"
_FIELD_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var"})


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, up to the first section or field list, and the descriptions by parameter."""
    if "\n" not in text and not text.lstrip().startswith(":"):
        return text.strip(), {}
    lines = _dedented(text)
    parameters: dict[str, str] = {}
    description: list[str] = []
    index = 0
    while index < len(lines):
        heading, body_at = _heading(lines, index)
        if heading:
            end = _end_of_section(lines, body_at)
            if heading in _PARAMETERS:
                read = _numpy_entries if body_at == index + 2 else _google_entries
                parameters.update(read(lines[body_at:end]))
            index = end
            continue
        field = re.match(_FIELD, lines[index])
        if field is not None:
            index = _read_field(lines, index, field, parameters)
            continue
        description.append(lines[index])
        index += 1
    return "\n".join(description).strip(), parameters


def _dedented(text: str) -> list[str]:
    """The lines without their common margin; the first line has none of it."""
    lines = text.expandtabs().splitlines()
    margins = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(margins, default=0)
    return [line.strip() if number == 0 else line[margin:].rstrip() for number, line in enumerate(lines)]


def _heading(lines: Sequence[str], index: int) -> tuple[str, int]:
    """The section that begins at this line, and where its body does; "" if none does."""
    line = lines[index]
    if not line or line[0].isspace():
        return "", index
    underlined = index + 1 < len(lines) and len(lines[index + 1]) >= 3 and not lines[index + 1].strip("-")
    if underlined and line.strip().lower() in _PARAMETERS | _OTHERS:
        return line.strip().lower(), index + 2
    google = re.match(_GOOGLE_HEADING, line)
    if google is not None and google[1].lower() in _PARAMETERS | _OTHERS:
        follows = next((each for each in lines[index + 1 :] if each), "")
        if follows[:1].isspace():
            return google[1].lower(), index + 1
    return "", index


def _end_of_section(lines: Sequence[str], start: int) -> int:
    """Where the section ends: at the next heading, or where Google style goes back to the margin after a blank line."""
    numpy = start >= 2 and bool(lines[start - 1]) and not lines[start - 1].strip("-")
    for index in range(start, len(lines)):
        if _heading(lines, index)[0] or re.match(_FIELD, lines[index]):
            return index
        if not numpy and lines[index] and not lines[index][0].isspace():
            return index
    return len(lines)


def _google_entries(lines: Sequence[str]) -> dict[str, str]:
    entries: dict[str, list[str]] = {}
    margin = min([len(line) - len(line.lstrip()) for line in lines if line], default=0)
    current: list[str] = []
    for line in lines:
        entry = re.match(_GOOGLE_ENTRY, line[margin:])
        if entry is not None and len(line) - len(line.lstrip()) == margin:
            current = entries[entry[1]] = [entry[2]]
        else:
            current.append(line.strip())
    return _flowed(entries)


def _numpy_entries(lines: Sequence[str]) -> dict[str, str]:
    entries: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        entry = re.match(_NUMPY_ENTRY, line)
        if entry is not None and line and not line[0].isspace():
            current = []
            for name in entry[1].split(","):
                entries[name.strip().lstrip("*")] = current
        else:
            current.append(line.strip())
    return _flowed(entries)


def _read_field(lines: Sequence[str], index: int, field: re.Match[str], parameters: dict[str, str]) -> int:
    """Reads one `:param name: text`, with the indented lines that go on with it; returns where the next thing is."""
    text = [field[3]]
    index += 1
    while index < len(lines) and lines[index][:1].isspace():
        text.append(lines[index].strip())
        index += 1
    words = (field[2] or "").split()
    if field[1] in _FIELD_PARAMETERS and words:
        parameters.update(_flowed({words[-1].lstrip("*"): text}))
    return index


def _flowed(entries: dict[str, list[str]]) -> dict[str, str]:
    texts = {name: " ".join([line for line in lines if line]) for name, lines in entries.items()}
    return {name: text for name, text in texts.items() if text}
