"""The one type variable that needs `typing_extensions`: type checkers see its default, the program a plain one."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    T_co = typing.TypeVar("T_co", covariant=True)
