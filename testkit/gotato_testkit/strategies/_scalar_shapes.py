"""Schemas of values without parts: constants, numbers, strings, and anything at all."""

from __future__ import annotations

from hypothesis import strategies as st

from ._shapes import VALUES, Shape, Values, key_of, type_of, typed
from .data import JSON, json_values, texts

_PATTERNS = {
    "^[a-z]+$": (st.text("abcxyz", min_size=1, max_size=5), st.sampled_from(["", "A", "a b", "1"])),
    "^a": (texts().map("a{}".format), texts().map("b{}".format)),
    r"\d": (texts().map("{}7".format), st.text("abc", max_size=4)),
}


def scalars() -> st.SearchStrategy[Shape]:
    """Shapes of values that hold no others, the simplest first. The kind is drawn first: all are as frequent."""
    return st.sampled_from(["string", "integer", "plain", "number", "pattern", "constant"]).flatmap(_of_kind)


def _of_kind(kind: str) -> st.SearchStrategy[Shape]:
    made = {
        "string": _strings,
        "integer": _integers,
        "plain": _plain,
        "number": _numbers,
        "pattern": _patterns,
        "constant": _constants,
    }
    return made[kind]()


def _plain() -> st.SearchStrategy[Shape]:
    """Types that have no keyword of their own, unions of them, and the schemas that everything fits."""
    unions = st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=3, unique=True)
    return st.one_of(
        st.sampled_from(["boolean", "null"]).map(lambda kind: typed(kind, {"type": kind}, VALUES[kind], None)),
        unions.map(_union),
        st.just(Shape({}, json_values(), None)),
        st.just(Shape(True, json_values(), None)),
    )


def _union(kinds: list[str]) -> Shape:
    return Shape({"type": kinds}, st.one_of(*[VALUES[kind] for kind in kinds]), None, frozenset(kinds))


@st.composite
def _integers(draw: st.DrawFn) -> Shape:
    least, most = sorted([draw(st.integers(-20, 20)), draw(st.integers(-20, 20))])
    schema: dict[str, JSON] = {"type": "integer"}
    misses: Values = st.integers(-20, 20).map(lambda each: each + 0.5)
    step = draw(st.sampled_from([1, 3]))
    bounds = draw(st.sampled_from([(), ("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")]))
    if bounds:
        low, high = bounds
        off = 1 if low == "exclusiveMinimum" else 0
        schema |= {low: least * step - off, high: most * step + off}
        misses |= st.integers(1, 9).map(lambda by: least * step - by) | st.integers(1, 9).map(
            lambda by: most * step + by
        )
    if step > 1:
        schema["multipleOf"] = step
        misses |= st.integers(least, most).map(lambda each: each * step + 1)
    fits = st.integers(least, most).map(lambda each: each * step)
    return typed("number", schema, fits | fits.map(float), misses)


@st.composite
def _numbers(draw: st.DrawFn) -> Shape:
    if draw(st.booleans()):
        return typed("number", {"type": "number"}, VALUES["number"], None)
    least, most = sorted([draw(st.integers(-20, 20)), draw(st.integers(-20, 20))])
    fits = st.integers(least, most) | st.floats(least, most)
    misses = st.floats(0.25, 9).map(lambda by: least - by) | st.floats(0.25, 9).map(lambda by: most + by)
    return typed("number", {"type": "number", "minimum": least, "maximum": most}, fits, misses)


@st.composite
def _strings(draw: st.DrawFn) -> Shape:
    schema: dict[str, JSON] = {"type": "string"}
    if not draw(st.booleans()):
        if draw(st.booleans()):
            schema |= {"format": "date", "description": draw(texts())}  # notes, which check nothing
        return typed("string", schema, texts(), None)
    least = draw(st.integers(0, 3))
    most = least + draw(st.integers(0, 3))
    schema |= {"minLength": least, "maxLength": most}
    misses: Values = st.text("abé𝄞", min_size=most + 1, max_size=most + 3)
    if least:
        misses |= st.text("abé𝄞", max_size=least - 1)
    return typed("string", schema, st.text("abé𝄞", min_size=least, max_size=most), misses)


def _patterns() -> st.SearchStrategy[Shape]:
    return st.sampled_from(sorted(_PATTERNS)).map(
        lambda pattern: typed("string", {"type": "string", "pattern": pattern}, *_PATTERNS[pattern])
    )


def _constants() -> st.SearchStrategy[Shape]:
    """`enum` and `const` of values of any type."""
    single = json_values(max_leaves=2).map(lambda value: _constant({"const": value}, [value]))
    several = st.lists(json_values(max_leaves=2), min_size=1, max_size=3, unique_by=lambda each: repr(key_of(each)))
    return single | several.map(lambda values: _constant({"enum": values}, values))


def _constant(schema: dict[str, JSON], values: list[JSON]) -> Shape:
    keys, kinds = {key_of(value) for value in values}, {type_of(value) for value in values}
    others = [VALUES[kind] for kind in sorted(kinds - {"null", "boolean"})]  # of those two there may be no other
    misses = st.one_of(*others).filter(lambda value: key_of(value) not in keys) if others else None
    return Shape(schema, st.sampled_from(values), misses, frozenset(kinds))
