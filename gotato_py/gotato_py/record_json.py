"""Records as plain JSON data and back: calls that wait, compactions, finished runs.

    {"kind": "waiting_call", "key": "m-1:0", "name": "pay", "question": "Pay 5?", "decision": "deny", "reason": "no"}
    {"kind": "compaction", "summary": {"role": "user", "parts": […]}, "through": "m-9"}
    {"kind": "run_record", "run_id": "r-1", "agent": "a-1", "status": "completed", "error": "", "started_at": 1.7e9, …}

Fields at their default are left out. What is written is strict JSON, and a record comes back as it was. The messages
and usages in it keep, in their `extra`, keys that this release does not know; a record has no such place, so unknown
keys of its own are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ._fields import wrong
from ._guards import is_mapping
from ._plain import plain_json
from .decisions import Approve, Deny
from .errors import InvalidArgument
from .message_json import JSONObject, message_from_dict, message_to_dict, usage_from_dict, usage_to_dict
from .messages import Message
from .records import Compaction, RunRecord, WaitingCall

__all__ = ["Record", "compaction_at", "message_at", "record_from_dict", "record_to_dict", "waiting_call_at"]

Record = WaitingCall | Compaction | RunRecord


def record_to_dict(record: Record) -> JSONObject:
    """The record as plain JSON data.

    Raises `InvalidArgument`, naming the path, for what is no record and for a value that JSON cannot hold.
    """
    if isinstance(record, WaitingCall):
        return _waiting_call(record)
    if isinstance(record, Compaction):
        return _compaction(record)
    if isinstance(record, RunRecord):
        return _run_record(record)
    raise wrong("record", "a WaitingCall, a Compaction or a RunRecord", record)


def record_from_dict(data: Mapping[str, object]) -> Record:
    """The record that `record_to_dict` wrote.

    Raises `InvalidArgument`, naming the path ("summary.parts[0].kind"), for an unknown kind, a missing key and a value
    of the wrong type. Keys that this release does not know are ignored.
    """
    made: Record = _record_at(data, "", "")
    return made


def waiting_call_at(data: object, path: str) -> WaitingCall:
    """The call that `record_to_dict` wrote; `path` is what an error calls it."""
    made: WaitingCall = _record_at(data, path, "waiting_call")
    return made


def compaction_at(data: object, path: str) -> Compaction:
    """The compaction that `record_to_dict` wrote; `path` is what an error calls it."""
    made: Compaction = _record_at(data, path, "compaction")
    return made


def _record_at(data: object, path: str, kind: str) -> Any:
    """The record of that kind, or of any."""
    if not is_mapping(data):
        raise wrong(path or "record", "a JSON object (a dict)", data)
    prefix = path + "." if path else ""
    given_kind = data.get("kind")
    if not isinstance(given_kind, str) or given_kind not in _KINDS or (kind and given_kind != kind):
        said = "is missing" if "kind" not in data else "is another" if given_kind in tuple(_KINDS) else "is unknown"
        raise InvalidArgument(f"{prefix}kind {said}; it has to be {kind or 'one of ' + ', '.join(_KINDS)}")
    made, needed, readers = _KINDS[given_kind]
    for name in needed:
        if name not in data:
            raise InvalidArgument(f"{prefix}{name} is missing")
    given = {name: read(data[name], prefix + name) for name, read in readers.items() if name in data}
    if made is WaitingCall:
        given["decision"] = _decision(data, prefix)
    try:
        return made(**given)
    except InvalidArgument as error:  # it names the field of the class ("RunRecord.turns")
        raise InvalidArgument(prefix + error.message.removeprefix(made.__name__ + ".")) from None


def message_at(data: object, path: str) -> Message:
    """The message that `message_to_dict` wrote; `path` is what an error calls it."""
    if not is_mapping(data):
        raise wrong(path, "a JSON object (a dict)", data)
    try:
        return message_from_dict(data)
    except InvalidArgument as error:
        said = error.message
        whole = said.startswith("message ")
        raise InvalidArgument(path + (said.removeprefix("message") if whole else f".{said}")) from None


def _waiting_call(record: WaitingCall) -> JSONObject:
    written: JSONObject = {"kind": "waiting_call", "key": record.key}
    for name in ("call_id", "name"):
        _add(written, name, getattr(record, name))
    if record.arguments:
        written["arguments"] = plain_json("arguments", record.arguments)
    _add(written, "question", record.question)
    if record.expires_at is not None:
        written["expires_at"] = plain_json("expires_at", record.expires_at)
    if isinstance(record.decision, Approve):
        written["decision"] = "approve"
    elif record.decision is not None:
        written["decision"] = "deny"
        _add(written, "reason", record.decision.reason)
    return written


def _compaction(record: Compaction) -> JSONObject:
    try:
        summary = message_to_dict(record.summary)
    except InvalidArgument as error:
        raise InvalidArgument(f"summary.{error.message}") from None
    written: JSONObject = {"kind": "compaction", "summary": summary, "through": record.through}
    for name in ("reason", "tokens_before", "tokens_after"):
        _add(written, name, getattr(record, name))
    _add(written, "usage", usage_to_dict(record.usage))
    if record.metadata:
        written["metadata"] = plain_json("metadata", record.metadata)
    return written


def _run_record(record: RunRecord) -> JSONObject:
    written: JSONObject = {"kind": "run_record"}
    for name in ("run_id", "agent", "status", "error", "started_at", "elapsed_s", "turns", "tool_calls"):
        written[name] = plain_json(name, getattr(record, name))
    written["usage"] = usage_to_dict(record.usage)
    return written


def _add(written: JSONObject, name: str, kept: object) -> None:
    if kept:
        written[name] = kept


def _decision(data: Mapping[str, Any], prefix: str) -> Approve | Deny | None:
    if "decision" not in data:
        return None
    decision, reason = data["decision"], data.get("reason", "")
    if decision == "approve":
        return Approve()
    if decision != "deny":
        raise InvalidArgument(f"{prefix}decision is unknown; it has to be one of approve, deny")
    if not isinstance(reason, str):
        raise wrong(f"{prefix}reason", "a str", reason)
    return Deny(reason)


def _checked_later(data: Any, path: str) -> Any:
    """The reader of a field whose type the class itself checks."""
    return plain_json(path, data)


def _object(data: Any, path: str) -> Any:
    if not is_mapping(data):
        raise wrong(path, "a JSON object (a dict)", data)
    return plain_json(path, data)


Reader = Callable[[Any, str], Any]
"""`reader(data, path)` makes the value of one field from its JSON."""


def _readers(names: str, **special: Reader) -> dict[str, Reader]:
    return {**dict.fromkeys(names.split(), _checked_later), **special}


_RUN_FIELDS = "run_id agent status error started_at elapsed_s turns tool_calls"
_KINDS: dict[str, tuple[Any, tuple[str, ...], dict[str, Reader]]] = {  # the class, the keys that it needs, all readers
    "waiting_call": (
        WaitingCall,
        ("key",),
        _readers("key call_id name question expires_at", arguments=_object),
    ),
    "compaction": (
        Compaction,
        ("summary", "through"),
        _readers(
            "through reason tokens_before tokens_after", summary=message_at, usage=usage_from_dict, metadata=_object
        ),
    ),
    "run_record": (
        RunRecord,
        (*_RUN_FIELDS.split(), "usage"),
        _readers(_RUN_FIELDS, usage=usage_from_dict),
    ),
}
