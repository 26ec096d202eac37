"""Server-sent events are the same however the network cuts them."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_gateway._sse import ServerEvent, SSEReader

DATA = Path(__file__).parent / "data"
BODIES = [path.read_bytes() for path in sorted(DATA.glob("*.sse"))]


def read(*pieces: bytes) -> list[ServerEvent]:
    """The events of a body that comes in these pieces."""
    reader = SSEReader()
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


def data_of(*pieces: bytes) -> list[str]:
    """The data of those events."""
    return [event.data for event in read(*pieces)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\n", ["a"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a\n\n", [" a"]),
        (b"data: a\r\n\r\n", ["a"]),
        (b"data: a\r\r", ["a"]),
        (b"data: a\rdata: b\n\r\n", ["a\nb"]),
        (b": comment\ndata: a\n:\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"\n\n\ndata: a\n\n\n\n", ["a"]),
        (b"data\n\n", []),
        (b"data: a\ndata\ndata: b\n\n", ["a\n\nb"]),
        (b"database: x\nxdata: y\nid: 1\nretry: 3\n\n", []),
        (b"data: a", ["a"]),
        (b"data: \xc3\xa9\xe2\x80\xa8\xc2\x85\x0b\x0c\x1c\n\n", ["é\u2028\x85\x0b\x0c\x1c"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        (b"", []),
    ],
)
def test_what_a_body_says(body: bytes, expected: list[str]) -> None:
    """Line ends, comments, fields and a missing last line are read as the format says, also byte by byte."""
    assert data_of(body) == expected
    assert data_of(*(body[i : i + 1] for i in range(len(body)))) == expected


def test_an_event_has_its_name() -> None:
    """The event field names the one event that it stands in."""
    assert read(b"event: ping\ndata: 1\n\ndata: 2\n\n") == [("ping", "1"), ("", "2")]


def test_an_event_is_given_out_at_once() -> None:
    """The blank line that ends an event is enough, in every kind of line end."""
    for end in (b"\n", b"\r\n", b"\r"):
        assert SSEReader().feed(b"data: a" + end + end) == [("", "a")]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b'{"error": {"code": 503}}\n', ['{"error": {"code": 503}}']),
        (b'{\n  "error": {\n    "code": 503\n  }\n}\n', ['{\n  "error": {\n    "code": 503\n  }\n}']),
        (b'{"error": {\r\n}}\r\n\r\ndata: b\r\n', []),
        (b'{"error":\n:ping\n1}\n', ['{"error":\n1}']),
        (b'error: {"code": 503}\n\ndata: [DONE]\n\n', ['{"error": {"code": 503}}']),
        (b"error: a word\n", []),
        (b'{"other": 1}\n', []),
        (b'{"error": \n', []),
        (b"{" + b"x" * 20000 + b'\n{"error": 1}\n', ['{"error": 1}']),
    ],
)
def test_an_error_on_bare_lines_is_an_event(written: bytes, said: list[str]) -> None:
    """A server that gives up in mid-stream may write its error as plain JSON; other bare lines are skipped."""
    body = b"data: a\n\n" + written
    found = [event.data for event in read(body) if event.event == "error"]
    assert found == said
    assert read(*(body[i : i + 1] for i in range(len(body)))) == read(body)


lines = st.sampled_from([b"data: a", b"data:", b"data: \xf0\x9f\x99\x88", b":c", b"", b"event: e", b"id: 1"])
ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


bodies = st.lists(st.tuples(lines, ends), max_size=12).map(lambda made: b"".join(line + end for line, end in made))


@given(body=bodies, data=st.data())
def test_cuts_change_nothing(body: bytes, data: st.DataObject) -> None:
    """A body gives the same events whole and in any pieces, empty ones included."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=10)))
    borders = [0, *cuts, len(body)]
    assert read(*(body[a:b] for a, b in pairwise(borders))) == read(body)


@given(body=st.binary(max_size=200))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    """Any bytes at all are read without an error."""
    assert data_of(body) == data_of(*(body[i : i + 1] for i in range(len(body))))


@pytest.mark.parametrize("size", [1, 3, 50])
def test_recordings_in_small_pieces(size: int) -> None:
    """Real streams in pieces of one size give the events of the whole."""
    for body in BODIES:
        assert read(*(body[i : i + size] for i in range(0, len(body), size))) == read(body)


def test_work_grows_with_the_bytes_only() -> None:
    """A line ten times as long, in pieces of one size, takes some ten times as long, not a hundred."""

    def seconds(length: int) -> float:
        body = b"data: " + b"x" * length + b"\n\n"
        pieces = [body[i : i + 20] for i in range(0, len(body), 20)]
        started = time.thread_time()  # the work of this thread: a machine that stalls adds nothing to it
        assert len(read(*pieces)) == 1
        return time.thread_time() - started

    assert seconds(2_000_000) < 40 * max(seconds(200_000), 0.005)
