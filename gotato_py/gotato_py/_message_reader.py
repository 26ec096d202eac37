"""The way back of `message_json`: messages, parts, calls, results and usage from plain JSON data."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Mapping
from typing import Any

from ._fields import wrong
from ._guards import is_array, is_mapping
from ._plain import plain_json
from ._text import well_formed
from .errors import InvalidArgument
from .messages import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage
from .parts import AudioPart, FilePart, ImagePart, JSONPart, Part, ReasoningPart, TextPart, ToolCall, Usage

USAGE_KEYS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def message_from_dict(data: Mapping[str, object]) -> Message:
    """The message that `message_to_dict` wrote.

    Raises `InvalidArgument`, naming the path ("parts[2].kind"), for an unknown role or kind, a missing key and a value
    of the wrong type. Keys that this release does not know are kept in `extra`.
    """
    if not is_mapping(data):
        raise wrong("message", "a JSON object (a dict)", data)
    role = data.get("role")
    fields = _ROLES.get(role) if isinstance(role, str) else None
    if fields is None:
        raise _unknown("role", data, _ROLES)
    made: Message = _read("", data, fields)
    return made


def part_from_dict(data: object, path: str = "part") -> Part:
    """The part that `part_to_dict` wrote; `path` is what an error calls it."""
    if not is_mapping(data):
        raise wrong(path, "a JSON object (a dict)", data)
    kind, text = data.get("kind"), data.get("text")
    if kind == "text" and len(data) == 2 and isinstance(text, str):  # nearly all parts are this
        return TextPart(text)
    fields = _KINDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise _unknown(f"{path}.kind", data, _KINDS)
    made: Part = _read(path, data, fields)
    return made


def call_from_dict(data: object, path: str = "call") -> ToolCall:
    """The tool call that `call_to_dict` wrote; `path` is what an error calls it."""
    made: ToolCall = _read(path, data, _CALL)
    return made


def result_from_dict(data: object, path: str = "result") -> ToolResult:
    """The tool result that `result_to_dict` wrote; `path` is what an error calls it."""
    made: ToolResult = _read(path, data, _RESULT)
    return made


def usage_from_dict(data: object, path: str = "usage") -> Usage:
    """The usage that `usage_to_dict` wrote; `path` is what an error calls it."""
    made: Usage = _read(path, data, _USAGE_FIELDS)
    return made


def _unknown(path: str, data: Mapping[str, object], known: Mapping[str, object]) -> InvalidArgument:
    said = "is missing" if path.rpartition(".")[2] not in data else "is unknown"
    return InvalidArgument(f"{path} {said}; it has to be one of {', '.join(known)}")


Reader = Callable[[Any, str], Any]
"""`reader(data, path)` makes the value of one field from its JSON."""


class _Fields:
    """How the JSON object of one value class is read: its class, the key that chose it, the keys that it needs, all
    that it knows, and a reader for each whose value is not kept as it is."""

    __slots__ = ("kind", "known", "needed", "readers", "tag")

    def __init__(self, kind: Any, needed: str, optional: str, tag: str = "", **readers: Reader) -> None:
        self.kind = kind
        self.tag = tag
        self.needed = needed.split()
        self.readers = tuple(readers.items())
        self.known = frozenset([*self.needed, *optional.split(), *readers])


def _read(path: str, data: object, fields: _Fields) -> Any:
    if not is_mapping(data):
        raise wrong(path, "a JSON object (a dict)", data)
    given = dict(data)
    if fields.tag:
        del given[fields.tag]
    prefix = path + "." if path else ""
    if not fields.known.issuperset(given):
        given["extra"] = _take_unknown(path, given, fields.known)
    for key, read in fields.readers:
        if key in given:
            given[key] = read(given[key], prefix + key)
    for key in fields.needed:
        if key not in given:
            raise InvalidArgument(f"{prefix}{key} is missing")
    try:
        return fields.kind(**given)
    except InvalidArgument as error:
        raise _at(path, fields.kind, error) from None


def _take_unknown(path: str, given: dict[str, Any], known: frozenset[str]) -> dict[str, object]:
    """Takes out the keys that this release does not know."""
    extra: dict[str, object] = {}
    for key in [key for key in given if key not in known]:
        if not isinstance(key, str):
            raise InvalidArgument(f"{path or 'message'} must have keys of type str, not {type(key).__name__}")
        extra[well_formed(key)] = plain_json(f"{path}.{key}" if path else key, given.pop(key))
    return extra


def _at(path: str, kind: type, error: InvalidArgument) -> InvalidArgument:
    """The constructor's error with the path in the JSON ("parts[2].text") for its own ("TextPart.text")."""
    owner = kind.__name__ + "."
    if error.message.startswith(owner):
        return InvalidArgument((path + "." if path else "") + error.message.removeprefix(owner))
    return InvalidArgument(f"{path}: {error.message}" if path else error.message)


def _bytes(data: Any, path: str) -> Any:
    if data is None:
        return None
    if not isinstance(data, str):
        raise wrong(path, "base64 text", data)
    try:
        return a2b_base64(data, strict_mode=True)
    except ValueError:
        raise InvalidArgument(f"{path} must be base64 text") from None


def _list_of(read: Callable[[Any, str], Any]) -> Reader:
    def read_list(data: Any, path: str) -> Any:
        if not is_array(data):
            raise wrong(path, "a JSON array (a list)", data)
        if len(data) == 1:  # most lists are one text or one call
            return (read(data[0], path + "[0]"),)
        return tuple([read(each, f"{path}[{index}]") for index, each in enumerate(data)])

    return read_list


def _object(data: Any, path: str) -> Any:
    if not is_mapping(data):
        raise wrong(path, "a JSON object (a dict)", data)
    return plain_json(path, data)


_READ_PARTS = _list_of(part_from_dict)
_KINDS = {
    "text": _Fields(TextPart, "text", "", "kind"),
    "reasoning": _Fields(ReasoningPart, "", "text signature origin redacted", "kind"),
    "image": _Fields(ImagePart, "", "url media_type detail", "kind", data=_bytes),
    "audio": _Fields(AudioPart, "data", "media_type", "kind", data=_bytes),
    "file": _Fields(FilePart, "", "url media_type filename", "kind", data=_bytes),
    "json": _Fields(JSONPart, "value", "", "kind"),
}
_CALL = _Fields(ToolCall, "id name", "arguments signature origin")
_USAGE_FIELDS = _Fields(Usage, "", " ".join(USAGE_KEYS))
_RESULT = _Fields(ToolResult, "call_id status", "error key", parts=_READ_PARTS, metadata=_object)
_ROLES = {
    "user": _Fields(UserMessage, "parts", "id", "role", parts=_READ_PARTS, metadata=_object),
    "assistant": _Fields(
        AssistantMessage,
        "",
        "stop_reason model id",
        "role",
        parts=_READ_PARTS,
        tool_calls=_list_of(call_from_dict),
        usage=usage_from_dict,
        metadata=_object,
    ),
    "tool": _Fields(ToolMessage, "result", "id", "role", result=result_from_dict, metadata=_object),
}
