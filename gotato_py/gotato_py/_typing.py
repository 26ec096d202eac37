"""The type variables that need `typing_extensions`: type checkers see their defaults, the program plain ones."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", default=Any)
    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    D = typing.TypeVar("D")
    T_co = typing.TypeVar("T_co", covariant=True)
