"""What a tool returned or raised, as a result: everything has a form, nothing raises, the model can read it."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import pathlib
import uuid
import warnings
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_py import (
    AssistantMessage,
    FilePart,
    ImagePart,
    JSONPart,
    Part,
    Pending,
    ReasoningPart,
    TextPart,
    ToolError,
    ToolResult,
    ToolResultStatus,
    Usage,
    UserMessage,
)
from gotato_py.messages import text_of
from gotato_py.normalise import Outcome, bound_parts, describe_exception, normalise
from gotato_py.parts import AudioPart


class Colour(enum.Enum):
    """Members whose values JSON can say, and one that it cannot."""

    RED = "red"
    TWO = 2
    ODD = (1, 2)


@dataclass
class Point:
    """A dataclass with a field that is none."""

    x: float
    label: str = "é"
    kind: ClassVar[str] = "no field"
    others: list[Point] = field(default_factory=list)


class Pair(NamedTuple):
    """A named tuple."""

    left: int
    right: object = None


class Model:
    """What looks like a pydantic model."""

    def model_dump(self, *, mode: str) -> dict[str, object]:
        """The fields, as pydantic gives them."""
        return {"mode": mode}


class Hostile:
    """An object whose every access raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __iter__(self) -> Iterator[object]:
        raise RuntimeError("iter")


class HostileMapping(Mapping[str, object]):
    """A mapping that ends badly."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getitem__(self, key: str) -> object:
        raise self.error

    def __iter__(self) -> Iterator[str]:
        return iter("a")

    def __len__(self) -> int:
        raise self.error


class HostileList(list[object]):
    """A list that cannot be iterated."""

    def __iter__(self) -> Iterator[object]:
        raise SystemExit(1)


def liar() -> object:
    """An object of a class that does not say its name, and that says to be of another class. Out of pytest's sight."""

    class Meta(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]  # on purpose
            raise RuntimeError("name")

    class Liar(metaclass=Meta):
        @property  # type: ignore[misc]  # on purpose
        def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
            raise RuntimeError("class")

    return Liar()


class BrokenText(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def text(returned: object) -> str:
    """The text of a result that must be ok."""
    outcome = normalise(returned)
    assert outcome.status == "ok", outcome
    assert outcome.error == ""
    return text_of(outcome.parts)


def refusal(returned: object) -> str:
    """The error of a result that must be failed."""
    outcome = normalise(returned)
    assert outcome.status == "failed"
    assert outcome.parts == ()
    return outcome.error


@pytest.mark.parametrize("empty", [None, "", b"", (), []])
def test_nothing_has_no_parts_or_says_so(empty: object) -> None:
    """None and empty text have no parts; an empty list is the list."""
    assert text(empty) == ("[]" if isinstance(empty, list | tuple) else "")
    assert (normalise(empty).parts == ()) is (text(empty) == "")


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("Zoë", "Zoë"),
        ("\ud800x", "\ufffdx"),
        (False, "false"),
        (0, "0"),
        (1.5, "1.5"),
        (float("nan"), "null"),
        ([1, float("-inf")], "[1, null]"),
        ({"a": "\udfff", "\ud800": [None, True]}, '{"a": "\ufffd", "\ufffd": [null, true]}'),
        ({1: "a", None: "b", 2.5: "d", Colour.RED: "e"}, '{"1": "a", "null": "b", "2.5": "d", "red": "e"}'),
        ((1, "é"), '[1, "é"]'),
        ({3, 1, 2}, "[1, 2, 3]"),
        (frozenset({"b", 1, None, "a", (2,), False}), '[false, null, 1, "a", "b", [2]]'),
        (b"caf\xc3\xa9", "café"),
        (bytearray(b"x"), "x"),
        ([b"\xff", b"x"], '["/w==", "x"]'),
        (dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC), "2024-01-02T03:00:00+00:00"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (dt.time(1, 2), "01:02:00"),
        (dt.timedelta(minutes=1.5), "90.0"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (decimal.Decimal("1.50"), "1.50"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (Colour.RED, "red"),
        (Colour.TWO, "2"),
        (Colour.ODD, "ODD"),
        ({"day": dt.date(2024, 1, 2), Colour.TWO: Colour.ODD}, '{"day": "2024-01-02", "2": "ODD"}'),
        (Point(1.0, others=[Point(2.0)]), None),
        (Pair(1), '{"left": 1, "right": null}'),
        (Usage(3), None),
        (Model(), '{"mode": "json"}'),
        (range(3), "[0, 1, 2]"),
        (deque([1]), "[1]"),
        (OrderedDict(a=1), '{"a": 1}'),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.values(), "[1]"),
        (type("Text", (str,), {"__str__": lambda self: "no"})("yes"), "yes"),
        (type("Number", (int,), {"__repr__": lambda self: "no"})(7), "7"),
        (type("Real", (float,), {"__repr__": lambda self: "no"})(0.5), "0.5"),
    ],
)
def test_data_becomes_text(returned: object, said: str | None) -> None:
    """Text stays as it is, other data is JSON text that is compact, readable and strict."""
    if said is None:
        json.loads(text(returned))
    else:
        assert text(returned) == said


def test_fields_are_names() -> None:
    """A dataclass and a value class are objects of their fields."""
    assert text(Point(1.0)) == '{"x": 1.0, "label": "é", "others": []}'
    assert json.loads(text(Usage(3)))["input_tokens"] == 3
    assert text({False: "a"}) == '{"false": "a"}'


def test_binary_is_a_file() -> None:
    """Bytes that are no text become a file part."""
    assert normalise(b"\xff\x00").parts == (FilePart(b"\xff\x00", media_type="application/octet-stream"),)


def test_parts_are_kept() -> None:
    """A part, a sequence of parts and the parts of a message are kept as they are; data between them becomes text."""
    image = ImagePart(url="https://example.org/a.png")
    assert normalise(image).parts == (image,)
    assert normalise([image, TextPart("x")]).parts == (image, TextPart("x"))
    assert normalise(("See:", image, {"a": 1}, None, b"\xff")).parts[:3] == (
        TextPart("See:"),
        image,
        TextPart('{"a": 1}'),
    )
    assert normalise(UserMessage([image])).parts == (image,)
    assert normalise(AssistantMessage("x")).parts == (TextPart("x"),)
    assert "holds a value of type object" in refusal([image, object()])
    assert "holds a value of type ValueError" in refusal([image, ValueError()])
    assert "holds a value of type generator" in refusal([image, (each for each in "a")])


def test_pending_keeps_its_handle() -> None:
    """Pending is told with its note, and its handle is at hand."""
    assert normalise(Pending("job-1", "queued")) == Outcome(normalise(Pending("x")).status, (), "queued", "job-1")
    assert normalise(Pending("job-1")).status == "pending"
    assert normalise(Pending("job-1")).error == "its result will follow"


def test_tool_result_speaks_for_itself() -> None:
    """A ToolResult may say ok or failed; what only the kernel can know is refused."""
    assert normalise(ToolResult("c", "failed", "x", error="y")) == Outcome(
        ToolResultStatus.FAILED, (TextPart("x"),), "y", ""
    )
    assert normalise(ToolResult("c", "ok", "x")) == Outcome(ToolResultStatus.OK, (TextPart("x"),), "", "")
    assert "may say ok or failed, not timed_out" in refusal(ToolResult("c", "timed_out"))


def test_returned_exception_is_a_failure() -> None:
    """An exception that is returned is a failure like one that is raised."""
    assert refusal(ValueError("no such row")) == "ValueError: no such row"
    assert refusal(ToolError("try tomorrow")) == "try tomorrow"
    assert refusal(BrokenText()) == "BrokenText"


def cyclic() -> list[object]:
    """A list that holds itself."""
    made: list[object] = [1]
    made.append({"a": made})
    return made


def nested(depth: int) -> object:
    """A list as deep as asked."""
    made: list[object] = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("make", "kind", "why"),
    [
        (object, "object", ""),
        (lambda: {"a": object()}, "dict", "a value of type object"),
        (lambda: print, "builtin_function_or_method", ""),
        (lambda: int, "type", ""),
        (cyclic, "list", "holds itself"),
        (lambda: nested(100_000), "list", "nested more than"),
        (lambda: {1: "a", "1": "b"}, "dict", "keys are the same"),
        (lambda: {(1, 2): "a"}, "dict", "a key of type tuple"),
        (lambda: 10**5000, "int", "too many digits"),
        (lambda: iter([1]), "list_iterator", "not iterated"),
        (lambda: map(str, [1]), "map", "not iterated"),
        (lambda: 1j, "complex", ""),
        (Hostile, "Hostile", ""),
        (lambda: [Hostile()], "list", "Hostile"),
        (lambda: {"a": Hostile()}, "dict", "Hostile"),
        (lambda: HostileMapping(RuntimeError("x")), "HostileMapping", "RuntimeError while it was read"),
        (lambda: HostileMapping(MemoryError()), "HostileMapping", "MemoryError while it was read"),
        (HostileList, "HostileList", "SystemExit while it was read"),
        (liar, "Liar", ""),
    ],
)
def test_what_json_cannot_say_is_a_failure(make: Callable[[], object], kind: str, why: str) -> None:
    """What has no JSON form is failed, names its type and the reason, and says that the tool did run."""
    error = refusal(make())
    assert error.startswith(f"a result of type {kind} is not serialisable")
    assert why in error
    assert error.endswith("; the tool did run")


def test_generator_is_not_started() -> None:
    """A generator is refused and never run."""
    started: list[int] = []

    def generate() -> Iterator[int]:
        started.append(1)
        yield 1

    assert "not iterated" in refusal(generate())
    assert started == []


def test_asynchronous_results_are_refused() -> None:
    """A coroutine is closed, so that nothing warns; anything else that must be awaited is refused too."""

    async def work() -> int:
        return 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    class Future:
        def __await__(self) -> Iterator[None]:
            yield

    class Stream:
        def __aiter__(self) -> Stream:
            return self

    coroutine = work()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "an async tool in a synchronous runtime" in refusal(coroutine)
        del coroutine
    for each in (stream(), Future(), Stream()):
        assert "synchronous runtime" in refusal(each)


def test_interrupts_pass() -> None:
    """Only the interrupts of the run get out, from whatever code of the object's."""
    with pytest.raises(KeyboardInterrupt):
        normalise(HostileMapping(KeyboardInterrupt()))
    with pytest.raises(TimeoutError):
        normalise(HostileMapping(TimeoutError()), (KeyboardInterrupt, TimeoutError))

    class Interrupted(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        describe_exception(Interrupted())


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
    | st.characters(categories=["Cs"]) | st.datetimes() | st.dates() | st.timedeltas() | st.uuids()
    | st.decimals() | st.sampled_from(Colour) | st.builds(Pair, st.integers()) | st.builds(Hostile) | st.builds(object)
)  # fmt: skip
HASHABLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()
ANYTHING = st.recursive(
    SCALARS | st.sets(HASHABLE, max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.builds(Pair, st.integers(), inner)
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_never_raises_and_is_always_readable(returned: object) -> None:
    """Whatever is returned has an outcome whose text UTF-8 and strict JSON can say, without a memory address."""
    outcome = normalise(returned)
    assert outcome.status in ("ok", "failed")
    assert (outcome.status == "failed") is bool(outcome.error)
    said = text_of(outcome.parts) + outcome.error
    said.encode()
    json.dumps([said], allow_nan=False)
    assert " at 0x" not in outcome.error


@given(st.lists(HASHABLE, unique=True, max_size=8))
def test_order_of_a_set_is_stable(items: list[object]) -> None:
    """A set is told in one order, however it was filled."""
    there, back = set(items), {*items[::-1]}
    assert normalise(there) == normalise(back)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_survives(data: object) -> None:
    """JSON data comes out as the JSON text of the same data."""
    if data is not None and not isinstance(data, str):
        assert json.loads(text(data)) == data


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such row"), "ValueError: no such row"),
        (ValueError(), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (BrokenText(), "BrokenText"),
        (ToolError("my own words"), "my own words"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("<object object at 0x7f00deadbeef>"), "ValueError: <object object>"),
    ],
)
def test_exception_in_a_line(error: BaseException, said: str) -> None:
    """An exception is told as its class and its text, a ToolError by its text alone, never with a memory address."""
    assert describe_exception(error) == said


def test_long_exception_is_cut() -> None:
    """An exception of endless text is told by its beginning."""
    assert len(describe_exception(ValueError("x" * 100_000))) < 9000


# Cutting


def size(parts: Sequence[Part]) -> int:
    """The bytes of the parts' text and data."""
    return sum(
        len(part.text.encode()) if isinstance(part, TextPart) else len(getattr(part, "data", b"") or b"")
        for part in parts
    )


def test_what_fits_is_untouched() -> None:
    """Parts within the limit, and without one, are returned as they are."""
    parts = (
        TextPart("é" * 50),
        ImagePart(b"x" * 10),
        AudioPart(b"y"),
        JSONPart([1]),
        ReasoningPart("r", signature="s"),
    )
    assert bound_parts(parts, None) is parts
    assert bound_parts(parts, 1000) == parts
    assert bound_parts((), 0) == ()
    assert bound_parts((TextPart("é" * 50),), 100) == (TextPart("é" * 50),)


def test_head_and_tail_are_kept() -> None:
    """A text over the limit keeps its head and its tail and says how many bytes are missing between them."""
    (part,) = bound_parts((TextPart("a" * 500 + "b" * 500),), 100)
    assert isinstance(part, TextPart)
    head, note, tail = part.text.split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    assert note == f"[... {1000 - len(head) - len(tail)} bytes left out ...]"
    assert 90 <= len(part.text) <= 100


def test_huge_text() -> None:
    """Fifty megabytes of characters of several bytes are cut between characters, close to the limit."""
    (part,) = bound_parts((TextPart("é" * 25_000_000),), 1 << 20)
    assert isinstance(part, TextPart)
    assert (1 << 20) - 4 <= len(part.text.encode()) <= 1 << 20
    assert part.text.count("\ufffd") == 0


def test_thousands_of_parts() -> None:
    """Ten thousand parts become few: texts are joined, and of others the middle is left out."""
    (joined,) = bound_parts((TextPart("x"),) * 10_001, 1 << 20)
    assert isinstance(joined, TextPart)
    assert len(joined.text) == joined.text.count("x") == 10_001
    images = bound_parts((ImagePart(b"x"),) * 10_001, 1 << 20)
    assert len(images) == 1000
    assert images[500] == TextPart("\n[... 9002 bytes left out ...]\n")
    mixed = bound_parts((TextPart("x"), TextPart("y"), ImagePart(b"x")) * 5_000, 1 << 20)
    assert mixed[0] == TextPart("xy")


def test_data_over_the_limit_is_named() -> None:
    """Data that alone is over the limit is replaced by a line that says what it was; JSON is cut as text."""
    (image,) = bound_parts((ImagePart(b"x" * 500, media_type="image/png"),), 100)
    assert image == TextPart("[image/png of 500 bytes left out: the limit is 100]")
    (audio,) = bound_parts((AudioPart(b"x" * 500),), 100)
    assert audio == TextPart("[AudioPart of 500 bytes left out: the limit is 100]")
    (data,) = bound_parts((JSONPart(["é" * 500]),), 100)
    assert isinstance(data, TextPart)
    assert data.text.startswith('["é')


def test_parts_are_taken_whole() -> None:
    """Of several parts the first and the last are kept, data whole or not at all."""
    parts = (TextPart("a" * 30), ImagePart(b"x" * 80), TextPart("b" * 30), ImagePart(b"y" * 10))
    kept = bound_parts(parts, 100)
    assert kept[0] == TextPart("a" * 30)
    assert kept[-1] == ImagePart(b"y" * 10)
    assert ImagePart(b"x" * 80) not in kept
    assert any(isinstance(part, TextPart) and "left out" in part.text for part in kept)


@given(
    st.lists(st.builds(TextPart, st.text()) | st.builds(ImagePart, st.binary())),
    st.integers(0, 120),
)
def test_limit_holds(parts: list[Part], most: int) -> None:
    """The limit holds for all parts together, and nothing is changed where it is not exceeded."""
    kept = bound_parts(tuple(parts), most)
    if size(parts) <= most and most:
        assert kept == tuple(parts)
    elif all(isinstance(part, TextPart) for part in parts):
        assert size(kept) <= most
    for part in kept:
        if isinstance(part, TextPart):
            part.text.encode()


@pytest.mark.parametrize("most", range(40))
def test_tiny_limit_holds_the_beginning(most: int) -> None:
    """A limit with no room for the line between holds what fits of the beginning."""
    kept = bound_parts((TextPart("héllo wörld " * 20),), most)
    assert size(kept) <= most
    assert text_of(kept).startswith("h") is (most > 0)
