"""What type checkers alone see: the defaults of type variables, and a class that few programs ever need."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import decimal

    from typing_extensions import TypeVar

    Decimal = decimal.Decimal  # loading it takes an eighth of what the kernel takes
    D = TypeVar("D", default=Any)
    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    Decimal = Any
    D = typing.TypeVar("D")
    T_co = typing.TypeVar("T_co", covariant=True)
