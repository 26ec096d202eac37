"""An encrypted reasoning item of the responses dialect, as the signature of a neutral part, and back.

The item goes back as it was, but without its plain text, and only together with the item that followed it: the server
refuses one without the other ("Reasoning models" in OpenAI's guides). Since a neutral message keeps its calls apart
from its parts, the signature says what followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gotato_py import ReasoningPart

from ._json import Object, count, dump_text, items, obj, parse_strict, text


class Sealed(NamedTuple):
    """A reasoning item. `follower` is the type of the item behind it: "" for none, None where that is not known.

    `call` is the place of that item among the calls of the answer, `phase` what a message said of itself.
    """

    item: Object
    follower: str | None = None
    call: int | None = None
    phase: str = ""


def seal(
    item_id: str, summary: Sequence[str], encrypted: str, follower: str, call: int | None = None, phase: str = ""
) -> str:
    """The signature of a part that can go back."""
    said: Object = {"id": item_id, "summary": list(summary), "encrypted_content": encrypted, "next": follower}
    if call is not None:
        said["call"] = call
    if phase:
        said["phase"] = phase
    return dump_text(said)


def unseal(part: ReasoningPart) -> Sealed | None:
    """The item that a part stands for; None where nothing can go back."""
    try:
        said = obj(parse_strict(part.signature))
    except ValueError:
        return None
    encrypted, item_id = text(said.get("encrypted_content")), text(said.get("id"))
    if not encrypted or not item_id:
        return None
    told = [text(each) for each in items(said["summary"])] if "summary" in said else [part.text] if part.text else []
    item: Object = {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": each} for each in told],
        "encrypted_content": encrypted,
    }
    follower = text(said["next"]) if "next" in said else None
    return Sealed(item, follower, count(said.get("call")), text(said.get("phase")))
