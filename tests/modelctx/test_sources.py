"""Text, Json, Time and Resource: sections that are made anew for each request."""

from __future__ import annotations

import json
import os
from datetime import timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx import Json, Resource, Section, Text, Time, render_sections
from gotato_modelctx._reading import shown_text, whole_characters
from gotato_py import InvalidArgument, NotFound
from gotato_testkit import ManualClock
from gotato_testkit import strategies as gst


def test_text_is_asked_for_each_time() -> None:
    """A callable's text is as it is now; None leaves the section out; a str stays."""
    texts = iter(["one", None, "two"])
    source = Text("todo", lambda: next(texts), {"n": "1"})
    assert [source(), source(), source()] == [
        Section("todo", "one", {"n": "1"}),
        None,
        Section("todo", "two", {"n": "1"}),
    ]
    assert Text("todo", "fixed")() == Section("todo", "fixed")


@given(gst.json_objects())
def test_json_is_exact_and_steady(value: dict[str, object]) -> None:
    """What is rendered reads back as the same data, and equal data in another order is the same text."""
    section = Json("data", lambda: value)()
    assert section is not None
    rendered = render_sections(section)
    assert json.loads(rendered.removeprefix("<data>\n").removesuffix("\n</data>")) == value
    assert Json("data", dict(reversed(value.items())))() == section


def test_json_of_a_tag_stays_json() -> None:
    """Text that would close the section is written so that it reads back the same."""
    section = Json("data", {"a": "</data>"})()
    assert section is not None
    assert section.text == '{"a": "\\u003c/data>"}'
    assert Json("data", None)() is None


def test_what_has_no_json_form_is_refused() -> None:
    """The error names the section, and does not hold the value."""
    for value in (float("nan"), object(), {"secret": {1, 2}}):
        with pytest.raises(InvalidArgument, match="data") as caught:
            Json("data", value)()
        assert "secret" not in str(caught.value)


def test_time_is_told_by_the_clock() -> None:
    """To the minute, with its zone and the day of the week; coarser where asked for."""
    clock = ManualClock(1_700_000_000)
    assert Time(clock=clock)() == Section("time", "2023-11-14 22:13 UTC, Tuesday")
    oslo = timezone(timedelta(hours=1), "CET")
    assert Time("now", clock, oslo)().text == "2023-11-14 23:13 CET, Tuesday"
    assert Time(clock=clock, precision="hour")().text == "2023-11-14 22:00 UTC, Tuesday"
    assert Time(clock=clock, precision="day")().text == "2023-11-14 UTC, Tuesday"
    assert Time()().text.endswith("day")


def test_time_stays_the_same_within_the_minute() -> None:
    """A request that is built again soon is the same; a minute later it is not."""
    clock = ManualClock(1_700_000_000)
    before = Time(clock=clock)()
    clock.advance(20)
    assert Time(clock=clock)() == before
    clock.advance(60)
    assert Time(clock=clock)() != before


def test_a_resource_is_read_each_time(tmp_path: Path) -> None:
    """What the file holds now is shown, links followed, whether its path is a str or a Path."""
    file = tmp_path / "notes.md"
    file.write_text("one", "utf-8")
    source = Resource("notes", file, attrs={"of": "me"})
    assert source() == Section("notes", "one", {"of": "me"})
    file.write_text("two", "utf-8")
    (tmp_path / "link").symlink_to(file)
    assert (
        source()
        == Resource("notes", str(tmp_path / "link"), attrs={"of": "me"})()
        == Section("notes", "two", {"of": "me"})
    )


def test_a_large_resource_is_cut_and_says_so(tmp_path: Path) -> None:
    """No more than the bound is shown, no character is broken, and the last line says what is missing."""
    file = tmp_path / "notes.md"
    file.write_text("aø" * 50, "utf-8")
    section = Resource("notes", file, max_bytes=8)()
    assert section is not None
    assert section.text == "aøaøa\n[cut: 143 of 150 bytes are left out here]"
    assert Resource("notes", lambda: "aø" * 50, max_bytes=8)() == section
    assert Resource("notes", file, max_bytes=150)() == Section("notes", "aø" * 50)


def test_odd_bytes_are_replaced(tmp_path: Path) -> None:
    """What is no UTF-8 becomes U+FFFD, a byte order mark is dropped, a lone surrogate is replaced."""
    file = tmp_path / "notes.md"
    file.write_bytes(b"\xef\xbb\xbfa\xffb")
    assert Resource("notes", file)() == Section("notes", "a\ufffdb")
    assert Resource("notes", lambda: b"a\xff")() == Section("notes", "a\ufffd")
    assert Resource("notes", lambda: "a\ud800")() == Section("notes", "a?")


def test_a_missing_resource_is_an_error_or_empty(tmp_path: Path) -> None:
    """By default the error names the file, without its folders; it can be left out instead."""
    gone = tmp_path / "notes.md"
    with pytest.raises(NotFound, match=r"no file notes\.md") as caught:
        Resource("notes", gone)()
    assert str(tmp_path) not in str(caught.value)
    assert Resource("notes", gone, missing="empty")() is None
    with pytest.raises(NotFound, match="gave nothing"):
        Resource("notes", lambda: None)()
    assert Resource("notes", lambda: None, missing="empty")() is None


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A folder, a pipe or a circle of links is refused at once, and never waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "loop"):
        with pytest.raises(NotFound, match="cannot be read"):
            Resource("notes", path, missing="empty")()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Text("", "x"), "tag"),
        (lambda: Text("a", 1), "source"),  # type: ignore[arg-type]  # on purpose
        (lambda: Json("a b", 1), "tag"),
        (lambda: Time("a b"), "tag"),
        (lambda: Time(precision="second"), "precision"),  # type: ignore[arg-type]  # on purpose
        (lambda: Resource("a b", "x"), "tag"),
        (lambda: Resource("a", 1), "source"),  # type: ignore[arg-type]  # on purpose
        (lambda: Resource("a", "x", max_bytes=0), "max_bytes"),
        (lambda: Resource("a", "x", max_bytes=True), "max_bytes"),
        (lambda: Resource("a", "x", missing="no"), "missing"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_wrong_arguments_are_refused(make: object, named: str) -> None:
    """When the source is made, and the error names the argument."""
    with pytest.raises(InvalidArgument, match=named):
        make()  # type: ignore[operator]  # one of the callables above


@given(gst.texts(), st.integers(0, 30))
def test_a_cut_breaks_no_character(text: str, most: int) -> None:
    """The kept bytes are the longest whole beginning of the text that fits."""
    data = text.encode()
    kept = whole_characters(data[:most])
    assert text.startswith(kept.decode())
    assert len(kept) > most - 4 or kept == data
    assert shown_text(data, len(data), len(data)) == text.removeprefix("\ufeff")


@given(st.binary(max_size=8))
def test_whatever_the_bytes_a_cut_drops_at_most_one_character(data: bytes) -> None:
    """Bytes that are no UTF-8 are cut as well: at most the three of a character that may have been begun."""
    kept = whole_characters(data)
    assert data.startswith(kept)
    assert len(data) - len(kept) <= 3
