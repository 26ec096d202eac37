"""What is told of a request that was too large, and still was when an extension had made room."""

from __future__ import annotations

import json

from ._attempt import counted
from ._ledger import size_of
from ._mapping import FrozenMapping
from .model import ModelRequest
from .model_errors import ContextOverflow


def still_too_large(error: ContextOverflow, number: int, request: ModelRequest) -> ContextOverflow:
    """The error of the last of `number` attempts, in a copy that says how much of the request is what.

    Its details hold it too, in bytes: `instructions`, `tools`, `messages` and `largest_message`.
    """
    specs = [[spec.name, spec.description, spec.input_schema] for spec in request.tools]
    sizes = [size_of(message) for message in request.messages]
    found = {
        "instructions": len(request.system.encode()),
        "tools": len(json.dumps(specs)) if specs else 0,
        "messages": sum(sizes),
        "largest_message": max(sizes),
    }
    told = counted(
        error,
        number,
        f"; room was made, and it still has {found['instructions']} bytes of instructions, {found['tools']} of tools"
        f" and {found['messages']} in {len(sizes)} message(s), the largest {found['largest_message']}",
    )
    told.details = FrozenMapping({**error.details, **found})
    return told
