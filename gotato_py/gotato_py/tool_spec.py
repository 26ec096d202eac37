"""What a tool says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from ._fields import Text, field, mapping
from ._mapping import EMPTY, FrozenMapping
from ._value import value
from .errors import InvalidArgument
from .parts import member_of
from .scope import checked_timeout


class ToolEffect(StrEnum):
    """What a tool may change, from nothing to what cannot be taken back."""

    READ = "read"
    WRITE_LOCAL = "write_local"
    WRITE_EXTERNAL = "write_external"
    DESTRUCTIVE = "destructive"
    UNSPECIFIED = "unspecified"

    @property
    def rank(self) -> int:
        """0 for `read` up to 3 for `destructive`; `unspecified` ranks as destructive."""
        return _RANK[self]

    def within(self, ceiling: ToolEffect | str) -> bool:
        """Whether this effect is no more than the ceiling."""
        wanted: ToolEffect = _effect("ToolEffect.within: ceiling", ceiling)
        return self.rank <= wanted.rank


_effect = member_of(ToolEffect)
_RANK = {"read": 0, "write_local": 1, "write_external": 2, "destructive": 3, "unspecified": 3}

NO_ARGUMENTS = FrozenMapping({"type": "object"})


def _name(where: str, given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidArgument(f"{where} must be a str that is not blank")
    return given


@value
class ToolSpec:
    """A tool's name, what it is for, and what it takes (`input_schema`, a JSON Schema for an object).

    `sequential` asks to run alone; `timeout` is in seconds and moves the call to a worker thread, where it is
    given up if it does not end.
    """

    name: str = field(check=_name)
    description: Text = ""
    input_schema: Mapping[str, object] = field(default=NO_ARGUMENTS, check=mapping)
    output_schema: Mapping[str, object] | None = field(
        default=None, check=lambda where, given: None if given is None else mapping(where, given)
    )
    effect: ToolEffect = field(default=ToolEffect.UNSPECIFIED, check=member_of(ToolEffect))
    sequential: bool = False
    timeout: float | None = field(default=None, check=checked_timeout)
    metadata: Mapping[str, object] = field(default=EMPTY, check=mapping, compare=False)
