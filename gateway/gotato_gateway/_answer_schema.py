"""The JSON Schema that a request asks of its answer, where the server takes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gotato_py import InvalidRequest, ModelRequest

from .quirks import Quirks


def answer_schema(request: ModelRequest, quirks: Quirks) -> Mapping[str, Any] | None:
    """The schema, None where there is none. Raises `InvalidRequest` for one that the server does not take here."""
    schema = request.options.response_schema
    if schema is None:
        return None
    if not quirks.response_schema:
        raise InvalidRequest("options.response_schema: this server or model takes no JSON Schema for its answer")
    if request.tools and not quirks.schema_with_tools:
        raise InvalidRequest(
            "options.response_schema: this server or model takes no JSON Schema for its answer beside tools; "
            "leave one out"
        )
    return schema
