"""`gotato context inspect|compact`, on a folder and on a database."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gotato_py import AssistantMessage, UserMessage

from . import places
from .places import Desk, each_store
from .world import STREAM, Provider, sse

desk = each_store(places.desk)
MakeProvider = Callable[..., Provider]


@pytest.fixture
def long(desk: Desk) -> Desk:
    """A session of ten questions and answers, of about a thousand tokens."""
    with desk.session() as session:
        for number in range(10):
            session.append(UserMessage(f"Question {number}: {'word ' * 40}", id=f"u{number}"))
            session.append(AssistantMessage(f"Answer {number}: {'word ' * 40}", id=f"a{number}"))
    return desk


def test_inspect_tells_what_the_model_would_see(long: Desk) -> None:
    """Each part is a line with its size; the tools are those of the command, the instructions those that are given."""
    done = long("context", "inspect", "s-1", "--instructions", "Be brief.")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "tokens, about" in lines[0]
    for words in ("system", "tool calculate", "tool weather", "message user  u0", "message assistant  a9"):
        assert any(words in line for line in lines), words
    assert "in the cacheable prefix" in done.out


def test_inspect_as_json_has_no_content(long: Desk) -> None:
    """--json prints sizes, names and ids."""
    done = long("context", "inspect", "s-1", "--json")
    assert (done.code, done.json["id"], done.json["problems"]) == (0, "s-1", [])
    assert done.json["tokens"] > done.json["cached_tokens"] > 0
    assert [part["kind"] for part in done.json["parts"]] == ["tool"] * 2 + ["message"] * 20
    assert "word" not in done.out


def test_compact_puts_a_summary_in_the_place_of_old_messages(long: Desk) -> None:
    """The model sees less, the session keeps everything, and what was done is told; a second time nothing is."""
    before = long("context", "inspect", "s-1", "--json").json["tokens"]
    done = long("context", "compact", "s-1", "--keep-tokens", "300")
    assert (done.code, done.err) == (0, "")
    assert "s-1: a summary stands for everything up to " in done.out
    told = long("context", "inspect", "s-1", "--json").json
    assert told["tokens"] < before
    assert told["dropped"][0]["by"] == "compaction"
    assert len(long("session", "show", "s-1", "--json").json["messages"]) == 20
    done = long("context", "compact", "s-1", "--keep-tokens", "3000")
    assert (done.code, done.out.startswith("s-1: nothing was done: it fits")) == (0, True)


def test_compact_as_json(long: Desk) -> None:
    """--json prints one object, whether something was done or not."""
    told = long("context", "compact", "s-1", "--keep-tokens", "300", "--json").json
    assert list(told) == ["id", "compacted", "through", "tokens_before", "tokens_after", "summary"]
    assert (told["id"], told["compacted"]) == ("s-1", True)
    assert told["tokens_after"] < told["tokens_before"]
    told = long("context", "compact", "s-1", "--keep-tokens", "3000", "--json").json
    assert told == {"id": "s-1", "compacted": False}


def test_a_model_can_write_the_summary(long: Desk, provider: MakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """--summarizer takes what --model takes."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    served = provider(STREAM + sse({"content": "They counted to ten."}, finish="stop"))
    argv = ["--summarizer", "openai:m", "--base-url", served.url, "--json"]
    told = long("context", "compact", "s-1", "--keep-tokens", "300", *argv).json
    assert "They counted to ten." in told["summary"]
    assert len(served.requests) == 1


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "required: --keep-tokens"),
        (["--keep-tokens", "-1"], "less than 0"),
        (["--keep-tokens", "1", "--summarizer", "gpt"], "no model 'gpt'"),
        (["--keep-tokens", "1", "--base-url", "http://x"], "--base-url goes with --summarizer"),
    ],
)
def test_a_mistake_changes_nothing(long: Desk, argv: list[str], words: str) -> None:
    """What cannot be meant is code 2."""
    done = long("context", "compact", "s-1", *argv)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert long("session", "show", "s-1", "--json").json["compactions"] == []


def test_what_fails_changes_nothing(long: Desk) -> None:
    """A summary that is no shorter than what it replaces is refused, in one line, with code 1."""
    done = long("context", "compact", "s-1", "--keep-tokens", "300", "--summarizer", "echo")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert long("session", "show", "s-1", "--json").json["compactions"] == []


def test_ctrl_c_asks_for_no_summary(long: Desk) -> None:
    """An interrupt ends it before anything is changed."""
    long.interrupts.note()
    done = long("context", "compact", "s-1", "--keep-tokens", "300")
    assert done == (130, "", "gotato: interrupted\n")
    assert long("session", "show", "s-1", "--json").json["compactions"] == []


@pytest.mark.parametrize("action", [["inspect"], ["compact", "--keep-tokens", "1"]])
def test_what_is_not_there_is_code_1(long: Desk, action: list[str]) -> None:
    """A session that the store has not is told in one line."""
    done = long("context", *action, "s-9")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "there is no session" in done.err
