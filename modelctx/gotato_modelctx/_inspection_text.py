"""An inspection as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST = 40
"""So many rows of messages are shown: the first and the last ones."""


def written(told: Mapping[str, Any]) -> str:  # Any: JSON data
    """The table: a line for each part, what a cache could keep, what is left out, what is wrong."""
    rows = [_row(part) for part in told["parts"]]
    lines = [f"{told['tokens']:>9,} tokens, about; {told['bytes']:,} bytes"]
    lines += _shortened(told["parts"], rows)
    lines.append(f"{told['cached_tokens']:>9,} of them in the cacheable prefix, hash {told['prefix_hash']}")
    lines.append(f"breakpoints: {', '.join(map(str, told['breakpoints'])) or 'none'}")
    for each in told["dropped"]:
        count = f"{'some' if each['messages'] is None else each['messages']} messages"
        tokens = "" if each["tokens"] is None else f", about {each['tokens']:,} tokens"
        lines.append(f"left out by {each['by']}: {count}{tokens}: {each['reason']}")
    lines += [f"cannot be sent: message {each['index']}: {each['text']}" for each in told["problems"]]
    return "\n".join(lines)


def _row(part: Mapping[str, Any]) -> str:  # Any: JSON data
    mark = "cached" if part["cached"] else "new"
    name = part["name"] if part["kind"] in ("system", "panel") else f"{part['kind']} {part['name']}"
    words = [f"  {name}" if "within" in part else name, part.get("detail", ""), part.get("id", "")]
    return f"{part['tokens']:>9,}  {part['bytes']:>11,} B  {mark:<6}  {'  '.join([word for word in words if word])}"


def _shortened(parts: list[Mapping[str, Any]], rows: list[str]) -> list[str]:  # Any: JSON data
    """The rows; of very many messages the ones in the middle are one line."""
    at = [index for index, part in enumerate(parts) if part["kind"] == "message"]
    if len(at) <= _MOST:
        return rows
    first, last = at[_MOST // 2], at[-_MOST // 2]
    hidden = parts[first:last]
    tokens, size = sum(part["tokens"] for part in hidden), sum(part["bytes"] for part in hidden)
    return [*rows[:first], f"{tokens:>9,}  {size:>11,} B  cached  … {len(hidden)} messages …", *rows[last:]]
