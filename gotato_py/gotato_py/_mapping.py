"""JSON data that nobody else changes: a read-only mapping that is a dict, and copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ._guards import is_array, is_mapping
from ._hashing import hash_of


class FrozenMapping(dict[str, object]):
    """A dict that cannot be changed. It is a dict, so that `json` and C code read it at full speed.

    `copy()` and `|` give a plain dict: something to change. The values are the giver's own; only the mapping is frozen.
    """

    __slots__ = ()

    def __new__(cls, given: Mapping[str, object] = {}, /) -> FrozenMapping:
        made = super().__new__(cls)
        dict[str, object].update(made, given)
        return made

    def __init__(self, given: Mapping[str, object] = {}, /) -> None:
        """Nothing is left to do: `dict.__init__` would update the mapping, each time that it is called."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:  # Any: stands in for methods of many signatures
        raise TypeError("this mapping is read-only; make a new dict from it and change that")

    # Refusing is the point: no caller needs the signatures that these have in a dict.
    __setitem__: Callable[..., NoReturn] = _refuse
    __delitem__: Callable[..., NoReturn] = _refuse
    clear: Callable[..., NoReturn] = _refuse
    pop: Callable[..., NoReturn] = _refuse
    popitem: Callable[..., NoReturn] = _refuse
    __ior__: Callable[..., NoReturn] = _refuse
    setdefault: Callable[..., NoReturn] = _refuse
    update: Callable[..., NoReturn] = _refuse

    def __hash__(self) -> int:  # type: ignore[override]  # dict has none, but this one cannot change
        return hash_of(self)

    def __reduce__(self) -> tuple[Callable[..., FrozenMapping], tuple[dict[str, object]]]:
        return FrozenMapping, (dict(self),)

    def __copy__(self) -> FrozenMapping:
        return self


EMPTY = FrozenMapping()


def copied(given: Any) -> Any:  # Any: JSON data
    """The same data, in mappings and lists of its own."""
    if is_mapping(given):
        return {name: copied(each) for name, each in given.items()}
    return [copied(each) for each in given] if is_array(given) else given


def apart(arguments: Mapping[str, object]) -> Mapping[str, object]:
    """The arguments of a call for somebody who only looks: what he does to a list in them is not run."""
    for each in arguments.values():
        if each.__class__ is list or each.__class__ is dict:
            own: dict[str, object] = copied(arguments)
            return own
    return arguments
