"""`estimate_tokens`: how large something is before anybody has counted it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given

from gotato_modelctx import bytes_counter, estimate_tokens, tiktoken_counter
from gotato_modelctx.tokens import part_tokens
from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    ModelContext,
    ModelOptions,
    ModelRequest,
    NotSupported,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolSpec,
    UserMessage,
    replace,
)
from gotato_testkit import strategies as gst

from ..effort import costly

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fives", 2), ("ø" * 4, 2), ("🙂", 1)])
def test_four_bytes_are_a_token(text: str, tokens: int) -> None:
    """Bytes of UTF-8 count, rounded up; only an empty text has none."""
    assert estimate_tokens(text) == bytes_counter(text) == tokens


@given(gst.texts(), gst.texts())
def test_more_text_is_never_less(first: str, second: str) -> None:
    """Adding to a text never lowers its estimate, and a text that is not empty has one."""
    assert estimate_tokens(first + second) >= max(estimate_tokens(first), estimate_tokens(second))
    assert (estimate_tokens(first) > 0) == bool(first)


@costly(4)
@given(gst.histories())
def test_messages_add_up(messages: list[Message]) -> None:
    """A sequence takes what its messages take, in whatever form it comes, and each message takes something."""
    alone = [estimate_tokens(message) for message in messages]
    assert all(each > 0 for each in alone)
    assert estimate_tokens(messages) == estimate_tokens(tuple(messages)) == sum(alone)


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (TextPart("x" * 40), 10),
        (ReasoningPart("x" * 40), 10),
        (ReasoningPart("x" * 40, signature="s" * 80), 20),
        (JSONPart({"a": [1, 2]}), 3),
        (ImagePart(b"\x89PNG" * 100_000), 1200),
        (ImagePart(url="https://example.org/a.png"), 1200),
        (ImagePart(b"\x89PNG", detail="low"), 100),
        (AudioPart(b"x" * 4000), 10),
        (FilePart(b"x" * 4000, media_type="application/pdf"), 100),
        (FilePart(b"x" * 4000, media_type="text/csv"), 1000),
        (FilePart(url="https://example.org/a.pdf"), 1000),
    ],
)
def test_each_kind_of_part_has_its_measure(part: Part, tokens: int) -> None:
    """Text counts by bytes, a picture flat, sound and files by size, a link flat."""
    assert estimate_tokens(UserMessage(part)) == 4 + tokens


def test_calls_and_results_count() -> None:
    """Names and arguments of calls count, and so do the words by which an outcome without parts is told."""
    answer = AssistantMessage("", [ToolCall("c1", "find", '{"q":"oslo"}')])
    assert estimate_tokens(answer) == 4 + 8 + 1 + 3
    told = ToolResult("c1", "not_run", error="no such tool")
    assert estimate_tokens(ToolMessage(told)) == 4 + bytes_counter(told.text)
    assert estimate_tokens(ToolMessage(ToolResult("c1", "ok", "done"))) == 5


def test_what_is_not_sent_does_not_count() -> None:
    """Ids and metadata are not sent."""
    assert estimate_tokens(UserMessage("Hi", id="m" * 99, metadata={"k": "v" * 99})) == estimate_tokens(
        UserMessage("Hi")
    )


def test_contexts_requests_and_tools_are_sums() -> None:
    """A context is its system text, messages and panel; a request has tools and perhaps a schema of its answer."""
    spec = ToolSpec("find", "Finds things.", {"type": "object"})
    messages = (UserMessage("Hello there"),)
    assert estimate_tokens(spec) == 8 + 1 + 4 + 5
    assert estimate_tokens(ModelContext("Be brief.", messages, "now")) == 3 + estimate_tokens(messages) + 1
    request = ModelRequest("Be brief.", messages, (spec,))
    assert estimate_tokens(request) == 3 + estimate_tokens(messages) + estimate_tokens(spec)
    asked = replace(request, options=ModelOptions(response_schema={"type": "object"}))
    assert estimate_tokens(asked) == estimate_tokens(request) + 5


def test_a_counter_counts_the_texts() -> None:
    """A counter replaces the default for every text; it never makes one that is not empty cost nothing."""
    assert estimate_tokens("one two three", counter=lambda text: len(text.split())) == 3
    assert estimate_tokens(UserMessage("one two"), counter=lambda text: len(text.split())) == 4 + 2
    assert estimate_tokens("   ", counter=lambda text: 0) == 1


@pytest.mark.parametrize("given_instead", [None, 7, b"bytes", [UserMessage("Hi"), "Hi"], {"role": "user"}])
def test_anything_else_is_refused(given_instead: object) -> None:
    """What is no text, message, context, request or tool is an InvalidArgument that says what came."""
    with pytest.raises(InvalidArgument, match="estimate_tokens"):
        estimate_tokens(given_instead)  # type: ignore[arg-type]  # on purpose


def run(program: str, *paths: Path) -> None:
    """Runs a program that sees the package and these paths."""
    found = [str(path) for path in (*paths, ROOT / "modelctx", ROOT / "gotato_py")]
    code = f"import sys\nsys.path[:0] = {found!r}\n{program}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=30)


def test_without_tiktoken_the_error_says_what_to_install() -> None:
    """Importing the package does not load tiktoken; asking for its counter without it names the extra."""
    run(
        """
from gotato_modelctx import tiktoken_counter
from gotato_py import NotSupported
assert "tiktoken" not in sys.modules
sys.modules["tiktoken"] = None
try:
    tiktoken_counter()
except NotSupported as error:
    assert "gotato-py[tokens]" in str(error)
else:
    raise SystemExit("a counter without tiktoken")
"""
    )


STAND_IN = '''
"""Stands in for tiktoken: one vocabulary that counts words, one that cannot be downloaded."""


class Words:
    def encode(self, text, *, disallowed_special):
        assert disallowed_special == ()
        return text.split()


def list_encoding_names():
    return ["o200k_base", "broken"]


def get_encoding(name):
    if name == "broken":
        raise ConnectionError("no network")
    return Words()
'''


def test_tiktoken_counts_texts(tmp_path: Path) -> None:
    """The counter takes a vocabulary's tokens, special words as text; an unknown or a broken vocabulary is refused."""
    (tmp_path / "tiktoken.py").write_text(STAND_IN, "utf-8")
    run(
        """
from gotato_modelctx import estimate_tokens, tiktoken_counter
from gotato_py import InvalidArgument, NotSupported
assert estimate_tokens("one <|endoftext|> three", counter=tiktoken_counter()) == 3
for name, expected in (("broken", NotSupported), ("other", InvalidArgument), (None, InvalidArgument)):
    try:
        tiktoken_counter(name)
    except expected as error:
        assert "tiktoken" in str(error)
    else:
        raise SystemExit(name)
""",
        tmp_path,
    )


VOCABULARY = '''
"""Adds a vocabulary to tiktoken, which looks for such modules: every byte is a token, and "ab" is one."""


def letters():
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    named = {"name": "letters", "pat_str": r"\\S+|\\s+"}
    return {**named, "mergeable_ranks": ranks, "special_tokens": {"<|endoftext|>": 257}}


ENCODING_CONSTRUCTORS = {"letters": letters}
'''


def test_tiktoken_itself_counts_texts(tmp_path: Path) -> None:
    """The package, with a vocabulary that needs no download: merged pairs are one token, special words are text."""
    pytest.importorskip("tiktoken")
    (tmp_path / "tiktoken_ext").mkdir()
    (tmp_path / "tiktoken_ext" / "letters.py").write_text(VOCABULARY, "utf-8")
    run(
        """
from gotato_modelctx import estimate_tokens, tiktoken_counter
from gotato_py import InvalidArgument
count = tiktoken_counter("letters")
assert [count(text) for text in ("", "abc", "\u00e9", "<|endoftext|>")] == [0, 2, 2, 13]
assert estimate_tokens("abab", counter=count) == 2
try:
    tiktoken_counter("another")
except InvalidArgument as error:
    assert "letters" in str(error)
else:
    raise SystemExit("an unknown vocabulary")
""",
        tmp_path,
    )


def test_the_real_tiktoken_agrees_roughly() -> None:
    """Where tiktoken and its vocabulary are at hand, the default is within a factor of two of it for English prose."""
    pytest.importorskip("tiktoken")
    try:
        counter = tiktoken_counter()
    except NotSupported:
        pytest.skip("the vocabulary cannot be downloaded")
    prose = "The quick brown fox jumps over the lazy dog, and nobody knows why. " * 20
    assert 0.5 < estimate_tokens(prose) / estimate_tokens(prose, counter=counter) < 2


def test_what_is_no_part_is_refused() -> None:
    """A part of a kind that is not known here is not guessed at."""
    with pytest.raises(InvalidArgument, match="not object"):
        part_tokens(object())  # type: ignore[arg-type]  # on purpose
