"""The fields of a value: how an argument is taken, checked and converted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ._guards import is_mapping
from ._mapping import EMPTY, FrozenMapping
from ._text import well_formed
from .errors import InvalidArgument

Check = Callable[[str, Any], Any]
"""`check(where, value)` returns the value to keep, or raises `InvalidArgument` naming `where` ("TextPart.text")."""

Text = str
"""The annotation of a text that is sent or stored: a lone surrogate in it becomes U+FFFD when the value is made."""

MISSING: Any = object()


class Field:
    """How one field is taken: its default, what checks or converts it, whether it is compared and keyword-only."""

    __slots__ = ("check", "compare", "default", "kw_only")

    def __init__(self, default: Any, check: Check | None, compare: bool, kw_only: bool) -> None:
        self.default, self.check, self.compare, self.kw_only = default, check, compare, kw_only

    def check_among(self, names: Collection[str]) -> Check | None:
        """The check of this field in a class with these fields."""
        return self.check


class ExtraField(Field):
    """The field `extra`: keys of a JSON object that this release does not know, so none that the class itself has."""

    __slots__ = ("tag",)

    def __init__(self, tag: str) -> None:
        super().__init__(EMPTY, mapping, False, True)
        self.tag = tag

    def check_among(self, names: Collection[str]) -> Check:
        known = {*names, self.tag} - {"extra"}

        def check(where: str, given: Any) -> FrozenMapping:
            kept = mapping(where, given)
            if not known.isdisjoint(kept):
                taken = ", ".join(sorted(known.intersection(kept)))
                raise InvalidArgument(f"{where} must hold no key that the value has itself: {taken}")
            return kept

        return check


def field(*, default: Any = MISSING, check: Check | None = None, compare: bool = True, kw_only: bool = False) -> Any:
    """Declares a field whose bare default would not say enough."""
    return Field(default, check, compare, kw_only)


def wrong(where: str, expected: str, got: object) -> InvalidArgument:
    """The error for a value of the wrong type. It names the type that came, never the value: that may be a prompt."""
    return InvalidArgument(f"{where} must be {expected}, not {type(got).__name__}")


def mapping(where: str, given: Any) -> FrozenMapping:
    """A read-only copy of a mapping with string keys."""
    if type(given) is FrozenMapping:
        return given
    if not is_mapping(given) or not all(isinstance(key, str) for key in given):
        raise wrong(where, "a mapping with str keys", given)
    return FrozenMapping(given)


def extra_field(tag: str = "") -> Any:
    """The keys of a JSON object that this release does not know; kept and written back.

    `tag` is the key that says which class the object is of ("role", "kind"), if there is one.
    """
    return ExtraField(tag)


def text(where: str, given: Any) -> str:
    """A plain str without lone surrogates."""
    if not isinstance(given, str):
        raise wrong(where, "a str", given)
    return well_formed(given)


def optional_text(where: str, given: Any) -> str | None:
    """None, or a plain str without lone surrogates."""
    if given is not None and not isinstance(given, str):
        raise wrong(where, "a str or None", given)
    return None if given is None else well_formed(given)


def instance_of(*kinds: type, optional: bool = False) -> Check:
    """A check for a field that holds an instance of one of the classes."""
    names = [f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}" for kind in kinds]
    said = " or ".join([*names, "None"] if optional else names)

    def check(where: str, given: Any) -> Any:
        if not isinstance(given, kinds) and not (optional and given is None):
            raise wrong(where, said, given)
        return given

    return exactly(kinds[0], check)


def exactly(kind: type, check: Check) -> Check:
    """The check, left out for values of exactly this type: nothing about them could be wrong."""
    setattr(check, "exact", kind)  # noqa: B010  # an attribute that functions do not declare
    return check
