"""What every value class of the kernel promises, driven over all of them."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import pydoc
import sys
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gotato_py
from gotato_py import (
    GotatoError,
    InvalidArgument,
    RateLimits,
    StopReason,
    ToolCall,
    ToolEffect,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    Usage,
    UserMessage,
)
from gotato_py._fields import Text, field, instance_of
from gotato_py._hashing import hash_of
from gotato_py._mapping import EMPTY, FrozenMapping
from gotato_py._value import replace, value

from . import strategies as sts


def value_classes() -> list[Any]:
    """Every value class that a module of the kernel declares."""
    found: list[Any] = []
    for info in pkgutil.iter_modules(gotato_py.__path__):
        module = importlib.import_module(f"gotato_py.{info.name}")
        classes = [each for each in vars(module).values() if isinstance(each, type)]
        found += [each for each in classes if "_value_fields" in vars(each) and each.__module__ == module.__name__]
    return sorted(found, key=lambda kind: kind.__name__)


KINDS = value_classes()
RESULT = ToolResult("c", "ok", "r")
SAMPLES: dict[str, tuple[Any, Any]] = {
    "str": ("x", "y"),
    "Text": ("x", "y"),
    "int": (1, 2),
    "float": (1.5, 2.5),
    "bool": (True, False),
    "bytes": (b"x", b"y"),
    "Any": ({"a": [1]}, [{}]),
    "ToolCall": (ToolCall("a", "b"), ToolCall("c", "d")),
    "ToolResult": (RESULT, ToolResult("d", "failed")),
    "UserMessage": (UserMessage("u"), UserMessage("v")),
    "ToolMessage": (ToolMessage(RESULT), ToolMessage(ToolResult("e", "ok"))),
    "Usage": (Usage(1), Usage(2)),
    "RateLimits": (RateLimits(1), RateLimits(2)),
    "ToolResultStatus": (ToolResultStatus.OK, ToolResultStatus.FAILED),
    "StopReason": (StopReason.PAUSE, StopReason.ERROR),
    "ToolEffect": (ToolEffect.READ, ToolEffect.DESTRUCTIVE),
    "Mapping[str, object]": ({"a": 1}, {"b": [2]}),
    "Mapping[str, object] | None": ({"a": 1}, None),
    "tuple[Part, ...]": ("x", "y"),
    "tuple[ToolCall, ...]": ([ToolCall("a", "b")], ()),
    "tuple[str, ...]": (["a"], ["b"]),
    "int | None": (5, None),
    "float | None": (5.5, None),
    "str | None": ("x", None),
}
UNKNOWN = "unchecked"
ONE_SOURCE = {"ImagePart", "FilePart"}


class Odd:
    """An object that no field takes, and whose repr no error may show."""

    def __repr__(self) -> str:
        return "s3cret"


def first(kind: Any, name: str) -> Any:
    """A value for the field."""
    return SAMPLES.get(kind._value_types[name], (UNKNOWN, UNKNOWN))[0]


def needed(kind: Any) -> dict[str, Any]:
    """Arguments for the fields that have no default."""
    signature = inspect.signature(kind)
    empty = inspect.Parameter.empty
    given = {name: first(kind, name) for name, each in signature.parameters.items() if each.default is empty}
    return given | ({"url": "u"} if kind.__name__ in ONE_SOURCE else {})


def sample(kind: Any) -> Any:
    """A value of the class."""
    return kind(**needed(kind))


def checked_fields() -> list[tuple[Any, str]]:
    """The fields that are checked or converted."""
    plain = {"str", "Text", "int", "float", "bool", "bytes"}
    return [
        (kind, name)
        for kind in KINDS
        for name, spec in kind._value_fields.items()
        if spec.check is not None or kind._value_types[name].removesuffix(" | None") in plain
    ]


WRONG: Mapping[str, list[Any]] = {
    "str": [5, b"x", ["x"], Odd()],
    "Text": [5, b"x", ["x"], Odd()],
    "int": [True, "5", 1.5, Odd()],
    "float": [True, "5", 1j, Odd()],
    "bool": [1, "x", Odd()],
    "bytes": ["x", bytearray(b"x"), Odd()],
}


@pytest.mark.parametrize(("kind", "name"), checked_fields(), ids=lambda each: getattr(each, "__name__", each))
def test_a_wrong_type_is_told_by_its_argument(kind: Any, name: str) -> None:
    """Each checked field refuses what it cannot hold, names itself and quotes nothing."""
    annotation = kind._value_types[name].removesuffix(" | None")
    for wrong in WRONG.get(annotation, [Odd()]):
        with pytest.raises(InvalidArgument) as caught:
            kind(**{**needed(kind), name: wrong})
        assert isinstance(caught.value, GotatoError)
        assert str(caught.value).startswith(f"{kind.__name__}.{name} must ")
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_frozen(kind: Any) -> None:
    """No attribute can be set, added or deleted, and there is no dict to reach around that."""
    held = sample(kind)
    for name in [*kind._value_fields, "another"]:
        with pytest.raises(AttributeError, match=f"^{kind.__name__}.{name} cannot be changed"):
            setattr(held, name, 1)
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(held, name)
    assert not hasattr(held, "__dict__")
    assert type(held) is kind


@pytest.mark.parametrize("kind", KINDS)
def test_equal_values_have_equal_hashes(kind: Any) -> None:
    """Values of one class are equal when their compared fields are; others never are."""
    one, same = sample(kind), sample(kind)
    assert one == same
    assert hash(one) == hash(same)
    assert one != object()
    assert len({one, same}) == 1
    for other in KINDS:
        assert other is kind or one != sample(other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_field_makes_another_value(kind: Any) -> None:
    """Each compared field decides about ==; the others, `id`, `metadata` and `extra` among them, do not."""
    held = sample(kind)
    for name, spec in kind._value_fields.items():
        if kind.__name__ in ONE_SOURCE and name in ("data", "url"):
            continue
        for other in SAMPLES.get(kind._value_types[name], ()):
            changed = replace(held, **{name: other})
            if getattr(changed, name) != getattr(held, name):
                assert (changed == held) == (not spec.compare)
            assert replace(changed, **{name: getattr(held, name)}) == held


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_pickles_and_copies(kind: Any) -> None:
    """Every protocol brings all fields back; a shallow copy is the value itself."""
    held = sample(kind)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(held, protocol))
        assert type(again) is kind
        assert all(getattr(again, name) == getattr(held, name) for name in kind._value_fields)
    assert copy.copy(held) is held
    assert copy.deepcopy(held) == held


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_can_be_replaced(kind: Any) -> None:
    """`replace` changes what it names, checks it, and refuses what the class does not have."""
    held = sample(kind)
    assert replace(held) == held
    assert held.__replace__() == held
    with pytest.raises(InvalidArgument, match=f"{kind.__name__} has no field 'nothing'"):
        replace(held, nothing=1)
    if sys.version_info >= (3, 13):
        assert copy.replace(held) == held


@pytest.mark.parametrize("kind", KINDS)
def test_a_signature_tells_the_fields(kind: Any) -> None:
    """`inspect.signature` has each field in its place, with its default."""
    parameters = inspect.signature(kind).parameters
    fields = kind._value_fields
    assert list(parameters) == sorted(fields, key=lambda name: fields[name].kw_only)
    positional = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert tuple(positional) == kind.__match_args__
    for name, each in parameters.items():
        if each.default is not each.empty:
            assert each.default is fields[name].default


@pytest.mark.parametrize("kind", KINDS)
def test_a_repr_shows_what_is_no_default(kind: Any) -> None:
    """A repr is the class and the fields that say something."""
    shown = repr(sample(kind))
    assert shown.startswith(f"{kind.__name__}(")
    told = {"lazy_hash": "prefix_hash"}  # computed when somebody looks
    assert all(f"{told.get(name, name)}=" in shown for name in needed(kind))
    assert "extra=" not in shown
    assert " at 0x" not in shown


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_class_documents_itself(kind: Any) -> None:
    """Each has a docstring, and its constructor takes no argument that it does not know."""
    assert kind.__doc__
    with pytest.raises(TypeError):
        kind(**needed(kind), nothing=1)


@pytest.mark.parametrize("kind", [gotato_py.Approve, gotato_py.Done])
def test_help_shows_no_machinery(kind: Any) -> None:
    """`help` of a value class tells of its fields and methods, and nothing of how it is made."""
    sample(kind)  # from now on it has a draft
    shown = pydoc.plain(pydoc.render_doc(kind))
    assert all(name in shown for name in inspect.signature(kind).parameters)
    assert "_value_" not in shown


def test_reprs_are_made_for_reading() -> None:
    """Members of enums show as their text, bytes by their number."""
    assert repr(RESULT) == "ToolResult(call_id='c', status='ok', parts=(TextPart(text='r'),))"
    assert repr(gotato_py.AudioPart(b"x" * 5000)) == "AudioPart(data=<5000 bytes>)"


def test_values_match() -> None:
    """Positional patterns follow the order of the fields."""
    match ToolCall("a", "b", "{}"):
        case ToolCall(call_id, name, arguments="{}"):
            assert (call_id, name) == ("a", "b")
        case _:
            pytest.fail("no match")


# ---- the decorator


T = TypeVar("T")


@value
class Base:
    """A header."""

    agent: str
    number: int = field(default=0, kw_only=True)
    kind: ClassVar[str] = "base"

    def doubled(self) -> int:
        return self.number * 2


@value
class Derived(Base):
    """A header and more."""

    note: Text | None = None
    kind: ClassVar[str] = "derived"

    def __check__(self) -> None:
        if self.doubled() > 10:
            raise InvalidArgument(f"{self!r} is too much")


@value
class Box(Generic[T]):
    """A generic value."""

    content: T
    calls: tuple[ToolCall, ...] = field(default=(), check=lambda where, given: tuple(given))


@value
class Nothing:
    """A value without fields."""


@value
class Own:
    """A value with methods of its own."""

    a: int

    def __repr__(self) -> str:
        return "own"

    def __reduce__(self) -> tuple[Any, ...]:
        return Own, (self.a + 1,)


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    """Values inherit fields, methods and class variables; == tells classes apart."""
    held = Derived("a", "n", number=5)
    assert (held.agent, held.note, held.number, held.kind, held.doubled()) == ("a", "n", 5, "derived", 10)
    assert Derived.__match_args__ == ("agent", "note")
    assert isinstance(held, Base)
    assert Base("a") != Derived("a")
    assert repr(held) == "Derived(agent='a', number=5, note='n')"
    assert Derived("a", "\ud800").note == "\ufffd"


def test_a_check_sees_the_finished_value() -> None:
    """`__check__` may use methods, class variables and the repr, under the class' own name."""
    with pytest.raises(InvalidArgument, match=r"^Derived\(agent='a', number=6\) is too much$"):
        Derived("a", number=6)


def test_generic_values_work() -> None:
    """A subscripted class makes values too, on every version."""
    held = Box[int](5)
    assert (held, held.content, held.calls) == (Box(5), 5, ())
    assert pickle.loads(pickle.dumps(held)) == held


def test_a_value_without_fields() -> None:
    """All of its values are equal."""
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert Nothing() not in [Base("a"), Own(1), None]
    assert repr(Nothing()) == "Nothing()"


def test_own_methods_stay() -> None:
    """What a class defines itself is not replaced."""
    assert repr(Own(1)) == "own"
    assert pickle.loads(pickle.dumps(Own(1))).a == 2


def test_a_plain_subclass_without_slots_of_its_own_works() -> None:
    """A subclass that adds behaviour alone needs no decorator."""

    class Loud(Base):
        __slots__ = ()

        def shout(self) -> str:
            return self.agent.upper()

    assert Loud("a").shout() == "A"
    assert type(Loud("a")) is Loud


def test_constructors_may_first_be_used_from_many_threads() -> None:
    """The constructor is compiled at the first call, wherever that is."""

    @value
    class Late:
        a: int
        b: str = ""

    gate = threading.Barrier(8)
    made: list[Late] = []

    def work(index: int) -> None:
        gate.wait()
        made.append(Late(index, b="x"))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.a for each in made) == list(range(8))


def test_instance_of_says_what_it_takes() -> None:
    """The shared check names its classes in the error."""
    check = instance_of(Usage, ToolCall, optional=True)
    assert check("X.y", None) is None
    assert check("X.y", Usage()) == Usage()
    with pytest.raises(InvalidArgument, match=r"^X.y must be a Usage or a ToolCall or None, not int$"):
        check("X.y", 5)


# ---- read-only mappings


def test_a_frozen_mapping_cannot_be_changed() -> None:
    """Everything that would change a dict is refused, calling its constructor again included."""
    held: Any = FrozenMapping({"a": 1})
    changes: list[Any] = [
        lambda: held.__setitem__("b", 2),
        lambda: held.__delitem__("a"),
        lambda: held.update(b=2),
        lambda: held.setdefault("b", 2),
        lambda: held.pop("a"),
        held.popitem,
        held.clear,
        lambda: held.__ior__({"b": 2}),
        lambda: setattr(held, "b", 2),
    ]
    for change in changes:
        with pytest.raises((TypeError, AttributeError)):
            change()
    held.__init__({"b": 2})
    assert held == {"a": 1}


@given(st.dictionaries(st.text(), sts.json_data))
def test_a_frozen_mapping_is_a_dict_otherwise(data: dict[str, Any]) -> None:
    """It compares, prints, pickles and copies as the dict that it was made from; `|` and `copy` give plain dicts."""
    held = FrozenMapping(data)
    assert held == data
    assert repr(held) == repr(data)
    assert hash(held) == hash(FrozenMapping(data)) == hash_of(data)
    for again in (pickle.loads(pickle.dumps(held)), copy.copy(held), copy.deepcopy(held)):
        assert (type(again), again) == (FrozenMapping, data)
    for plain in (held.copy(), held | {}, {} | held):
        assert (type(plain), plain) == (dict, data)


def test_a_frozen_mapping_is_a_copy() -> None:
    """Changing what it was made from does not change it."""
    data: dict[str, object] = {"a": 1}
    held = FrozenMapping(data)
    data["b"] = 2
    assert held == {"a": 1}
    assert EMPTY == {}
