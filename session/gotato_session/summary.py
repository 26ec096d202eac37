"""What a list of sessions says of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session as a list shows it. Times are Unix seconds, `size` is in bytes as stored, `messages` counts those of
    the whole session; None is what cannot be known without reading all of it."""

    id: str
    parent_id: str
    created_at: float
    updated_at: float
    size: int
    metadata: Mapping[str, Any] | None = field(default_factory=dict[str, Any])
    messages: int | None = None
