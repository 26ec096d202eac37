"""What builders note in `ModelContext.metadata` for `inspect`: the sections they added, and what they left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from gotato_py import ModelContext

from ._arguments import is_sequence
from .sections import Section

T = TypeVar("T")
SECTIONS, DROPPED = "sections", "dropped"


@dataclass(frozen=True, slots=True)
class Placed:
    """A section, and where it stands."""

    place: Literal["system", "panel"]
    section: Section


@dataclass(frozen=True, slots=True)
class Dropped:
    """Messages that are not shown: by whom, how many, about how many tokens they take (None: not known), and why."""

    by: str
    messages: int | None
    tokens: int | None
    reason: str


def placed_in(context: ModelContext) -> tuple[Placed, ...]:
    """The sections that builders noted."""
    return _noted(context, SECTIONS, Placed)


def dropped_from(context: ModelContext) -> tuple[Dropped, ...]:
    """What builders noted to have left out."""
    return _noted(context, DROPPED, Dropped)


def _noted(context: ModelContext, key: str, kind: type[T]) -> tuple[T, ...]:
    given: Any = context.metadata.get(key, ())  # Any: other builders may note what they like
    return tuple([each for each in given if isinstance(each, kind)]) if is_sequence(given) else ()
