"""`@value`: frozen, slotted value classes that are cheap to declare and cheap to make.

A frozen dataclass pays for every field twice (`object.__setattr__`) and takes about a millisecond to declare. Here
an instance is filled as a *draft*, of a subclass without slots of its own that can be written to, and then becomes
the frozen class by one assignment of `__class__`. `__new__` is the only generated code.

Values inherit from values: a decorated subclass has the fields of its base first, then its own. Annotations are read
as text, so a module that declares values needs `from __future__ import annotations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

from ._fields import MISSING, Field, field, optional_text, text, wrong
from .errors import InvalidArgument

T = TypeVar("T")
# One inline test by annotation: the fast case first, and what the error says.
_NEEDED = {
    "str": ("{0}.__class__ is not str and not isinstance({0}, str)", "a str"),
    "bool": ("{0}.__class__ is not bool", "a bool"),
    "int": ("{0}.__class__ is not int and (isinstance({0}, bool) or not isinstance({0}, int))", "an int"),
    "float": (
        "{0}.__class__ is not float and (isinstance({0}, bool) or not isinstance({0}, (int, float)))",
        "a number",
    ),
    "bytes": ("{0}.__class__ is not bytes", "bytes"),
}
_PLAIN = _NEEDED | {
    f"{name} | None": (f"{{0}} is not None and ({test})", f"{said} or None") for name, (test, said) in _NEEDED.items()
}
# Texts that are sent or stored: what is true of nearly all of them, and what makes the others so.
_TEXTS = {
    "Text": ("{0}.__class__ is not str or not {0}.isascii()", text),
    "Text | None": ("{0} is not None", optional_text),
}


def unchecked(kind: Callable[..., T], *, packed: int | None = None) -> Callable[..., T]:
    """The constructor without its checks, all arguments positional, for values that the kernel itself has made.

    From field number `packed` on, where given, the fields come together in one last argument, a tuple of them all.
    """
    owner: Any = kind
    draft = _draft_of(owner)
    fields: Mapping[str, Field] = owner._value_fields
    single, together = list(fields)[:packed], [] if packed is None else list(fields)[packed:]
    taken = [name if fields[name].default is MISSING else f"{name}=default_{name}" for name in single]
    scope = {
        "draft": draft,
        "new": object.__new__,
        "cls": owner,
        **{f"default_{name}": spec.default for name, spec in fields.items()},
    }
    lines = [
        f"def make({', '.join(taken if packed is None else [*taken, 'packed'])}):",
        "    self = new(draft)",
        *(f"    self.{name} = {name}" for name in single),
        *([f"    {', '.join(f'self.{name}' for name in together)}, = packed"] if together else []),
    ]
    exec(
        "\n".join([*lines, "    self.__class__ = cls", "    return self"]), scope
    )  # the source is our own declarations
    return cast("Callable[..., T]", scope["make"])


def unchecked_later(kind: Callable[..., T]) -> Callable[..., T]:
    """The same, compiled at its first use: for values that most programs never make."""
    compiled: list[Callable[..., T]] = []

    def make(*given: Any, **named: Any) -> T:  # Any: the fields of the kind
        if not compiled:
            compiled.append(unchecked(kind))
        return compiled[0](*given, **named)

    return make


def of_defaults(kind: Callable[[], T]) -> T:
    """The value whose fields all have their defaults, made without compiling a constructor while importing."""
    owner: Any = kind
    made = object.__new__(_draft_of(owner))
    for name, spec in owner._value_fields.items():
        setattr(made, name, spec.default)
    made.__class__ = owner
    return made  # type: ignore[no-any-return]  # it has just become one


def _constructor(owner: Any, fields: Mapping[str, Field], types: Mapping[str, str], draft: type) -> Any:
    """Compiles `__new__`: check each argument, fill the draft, freeze it."""
    scope: dict[str, Any] = {"draft": draft, "new": object.__new__, "wrong": wrong}
    positional: list[str] = []
    keyword: list[str] = []
    body: list[str] = []
    for name, spec in fields.items():
        where = f"{owner.__name__}.{name}"
        (keyword if spec.kw_only else positional).append(name if spec.default is MISSING else f"{name}=default_{name}")
        scope[f"default_{name}"] = spec.default
        kept = name
        check = spec.check_among(fields)
        if check is not None:
            scope[f"check_{name}"] = check
            guard = "" if spec.default is MISSING else f" if {name} is not default_{name} else {name}"
            exact = getattr(check, "exact", None)
            if exact is not None:
                scope[f"exact_{name}"] = exact
                unset = "" if spec.default is MISSING else f" and {name} is not default_{name}"
                guard = f" if {name}.__class__ is not exact_{name}{unset} else {name}"
            kept = f"check_{name}({where!r}, {name}){guard}"
        elif types[name] in _PLAIN:
            test, said = _PLAIN[types[name]]
            body.append(f"    if {test.format(name)}: raise wrong({where!r}, {said!r}, {name})")
        elif types[name] in _TEXTS:
            test, scope[f"text_{name}"] = _TEXTS[types[name]]
            body.append(f"    if {test.format(name)}: {name} = text_{name}({where!r}, {name})")
        body.append(f"    self.{name} = {kept}")
    if keyword:
        positional += ["*", *keyword]
    finish = ["    check_whole(self)"] if hasattr(owner, "__check__") else []
    scope["check_whole"] = getattr(owner, "__check__", None)
    lines = [f"def __new__({', '.join(['cls', *positional])}):", "    self = new(draft)", *body, *finish]
    lines += ["    self.__class__ = cls", "    return self"]
    exec("\n".join(lines), scope)  # the source is our own declarations
    scope["__new__"].__qualname__ = owner.__name__  # what Python names when an argument is unknown or missing
    return scope["__new__"]


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    owner = type(self).__name__
    raise AttributeError(f"{owner}.{name} cannot be changed: values are frozen; use copy.replace or make a new one")


_SHOWN_BYTES = 32


def _repr(self: Any) -> str:
    shown: list[str] = []
    fields: Mapping[str, Field] = self._value_fields
    for name, spec in fields.items():
        kept: object = getattr(self, name)
        if spec.default is MISSING or kept != spec.default:
            shown.append(f"{name}={_shown(kept)}")
    return f"{type(self).__name__}({', '.join(shown)})"


def _shown(kept: object) -> str:
    """Made for reading: a member of an enum as the text that it equals, a picture by its size."""
    if isinstance(kept, StrEnum):
        return repr(kept.value)
    return f"<{len(kept)} bytes>" if isinstance(kept, bytes) and len(kept) > _SHOWN_BYTES else repr(kept)


def reduce(self: Any) -> tuple[Any, ...]:
    kept = {name: getattr(self, name) for name in self._value_fields}
    return restore, (type(self), {name: each for name, each in kept.items() if each is not _default(self, name)})


def _default(self: Any, name: str) -> object:
    return self._value_fields[name].default


def restore(kind: type[T], kept: Mapping[str, object]) -> T:
    """Makes the value again from its fields (pickling, copying)."""
    return kind(**kept)


def replace(self: T, /, **changes: object) -> T:
    """The value with some fields changed: `copy.replace` of Python 3.13, for every version."""
    fields: Mapping[str, Field] = getattr(type(self), "_value_fields")  # noqa: B009  # set by the decorator
    unknown = changes.keys() - fields.keys()
    if unknown:
        raise InvalidArgument(f"{type(self).__name__} has no field {min(unknown)!r}; it has {', '.join(fields)}")
    return restore(type(self), {name: getattr(self, name) for name in fields} | changes)


def _same(self: object) -> object:
    return self


def _compare_by(names: tuple[str, ...]) -> tuple[Any, Any]:
    key: Callable[[object], object] = attrgetter(*names) if names else type

    def equal(self: object, other: object) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or key(self) == key(other)

    def hashed(self: object) -> int:
        return hash(key(self))

    return equal, hashed


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Makes a frozen, slotted value class from annotations and defaults, as a dataclass would.

    Fields annotated `str`, `int`, `float`, `bool` or `bytes` (also `| None`) are checked; `field(check=…)` checks or
    converts others; `Text` is for texts that are sent or stored. `__check__(self)`, where defined, sees the whole value
    before it freezes and may still set fields.
    """
    namespace = dict(cls.__dict__)
    inherited: Mapping[str, Field] = getattr(cls, "_value_fields", {})
    inherited_types: Mapping[str, str] = getattr(cls, "_value_types", {})
    own = {name: kind for name, kind in namespace.get("__annotations__", {}).items() if not _is_class_var(kind)}
    declared: dict[str, Field] = {}
    for name in own:
        given: Any = namespace.pop(name, MISSING)
        declared[name] = given if isinstance(given, Field) else Field(given, None, True, False)
    fields, types = {**inherited, **declared}, {**inherited_types, **own}
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    compared = tuple(name for name, spec in fields.items() if spec.compare)
    equal, hashed = _compare_by(compared)
    positional = tuple(name for name, spec in fields.items() if not spec.kw_only)
    slots = tuple(name for name in own if name not in inherited)
    namespace.update(__slots__=slots, __match_args__=positional, _value_fields=fields, _value_types=types)
    namespace["__signature__"] = _BuildForInspect()
    own_methods = {"__repr__": _repr, "__eq__": equal, "__hash__": hashed}
    for name, method in (own_methods if inherited else own_methods | _SHARED_METHODS).items():
        namespace.setdefault(name, method)
    namespace["__new__"] = staticmethod(_build_on_first_use)
    metaclass = cast("Callable[..., type[T]]", type(cls))
    return metaclass(cls.__name__, cls.__bases__, namespace)


_SHARED_METHODS = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__replace__": replace,
    "__reduce__": reduce,
    "__copy__": _same,
}
"""What the subclasses of a value inherit, unless they say otherwise."""


def _is_class_var(annotation: str) -> bool:
    return annotation.partition("[")[0].rpartition(".")[2] == "ClassVar"


def _build_on_first_use(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Compiles the constructor at the first call: most programs use few of the classes that they import."""
    _build(cls)
    return cls(*args, **kwargs)


def _build(cls: Any) -> None:
    while "__new__" not in cls.__dict__:  # a plain subclass has the constructor of its base
        cls = cls.__base__
    if cls.__dict__["__new__"].__func__ is _build_on_first_use:
        cls.__new__ = staticmethod(_constructor(cls, cls._value_fields, cls._value_types, _draft_of(cls)))


def _draft_of(cls: Any) -> Any:
    """The class of the drafts of a value class: the same, but writable."""
    if "_value_draft" not in cls.__dict__:
        # Both methods, or Python falls back to the slow way for either.
        writable = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__, "__new__": object.__new__}
        body = {"__slots__": (), "__module__": cls.__module__, **writable}
        cls._value_draft = type(cls)(cls.__name__, (cls,), body)
    return cls._value_draft


class _BuildForInspect:
    """As `__signature__`, makes `inspect.signature` see the generated constructor, not the stand-in."""

    def __get__(self, instance: object, owner: type) -> None:
        _build(owner)
