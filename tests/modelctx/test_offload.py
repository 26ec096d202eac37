"""`Offload`: a tool result that is too large is shown by its ends; the transcript keeps it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.offload import Offload
from gotato_modelctx.policy import CompactPolicy
from gotato_modelctx.tokens import estimate_tokens, message_tokens
from gotato_py import (
    Hooks,
    ImagePart,
    InvalidArgument,
    JSONPart,
    MemoryTranscript,
    Message,
    TextPart,
    ToolMessage,
    TurnView,
    UserMessage,
    replace,
)
from gotato_testkit import ManualClock, call, say

from ..kernel.laws import assert_laws
from ..kernel.stage import Stage
from .fake_summarizers import FakeSummarizer, calls, result, user

HUGE = "".join(f"line {number}\n" for number in range(5000))


class Store:
    """Keeps texts under a name made of what they say."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.calls = 0

    def __call__(self, text: str) -> str:
        self.calls += 1
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.kept[name] = text
        return name


def read(what: str = "") -> str:
    """Reads."""
    return HUGE if what == "huge" else "small"


def view_of(messages: Sequence[Message]) -> TurnView:
    """A view made by hand, of a transcript of its own."""
    return TurnView("", messages, MemoryTranscript(messages))


def shown(offload: Offload, *messages: Message) -> Sequence[Message]:
    """What it shows of these messages."""
    return offload.transform(view_of(messages), messages)


def test_head_tail_and_where_the_whole_is() -> None:
    """The request shows both ends and the reference; the transcript keeps the result verbatim."""
    store = Store()
    stage = Stage(call("read", what="huge"), say("Ok."), tools=[read], extensions=[Offload(store, shown_tokens=200)])
    assert stage.run("read it").ok
    (kept,) = stage.results
    assert kept.text == HUGE
    sent = stage.model.requests[1].messages[-1]
    assert isinstance(sent, ToolMessage)
    ((name, text),) = store.kept.items()
    assert text == HUGE
    assert sent.text.startswith("line 0\nline 1\n")
    assert sent.text.endswith("line 4998\nline 4999\n")
    assert f"characters left out of the middle; the whole result is stored as {name} …]" in sent.text
    assert estimate_tokens(sent.text) <= 200
    assert (sent.id, sent.result.key, sent.result.status) == (kept.id, kept.result.key, "ok")
    assert_laws(stage)


def test_the_same_bytes_in_every_request() -> None:
    """What was shown once is shown the same in all later requests, of later runs, and by another process."""
    store = Store()
    steps = [call("read", what="huge"), call("read"), say("Ok."), call("read", what="huge"), say("Ok."), say("Ok.")]
    stage = Stage(*steps, tools=[read], extensions=[Offload(store)])
    assert [stage.run(each).ok for each in ("one", "two", "three")] == [True] * 3
    requests = stage.model.requests
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
    assert store.calls == 2
    again = shown(Offload(Store()), *stage.messages)
    assert tuple(again)[: len(requests[-1].messages)] == requests[-1].messages
    assert_laws(stage)


def test_nothing_that_is_large() -> None:
    """Where nothing is replaced the same object is returned, which is no work for the kernel."""
    messages: tuple[Message, ...] = (user("u"), calls("a", "x"), result("a", 0), user("big", 50_000))
    offload = Offload(Store())
    view = view_of(messages)
    assert offload.transform(view, messages) is messages
    longer: list[Message] = [*messages, user("v")]
    assert offload.transform(view, longer) is longer
    assert list(offload.transform(view, [])) == []


def test_each_message_is_looked_at_once() -> None:
    """The work of a turn does not grow with the history; one that was cut is looked at anew, and stored once."""
    looked: list[int] = []

    def counter(text: str) -> int:
        looked.append(len(text))
        return len(text) // 4

    store = Store()
    offload = Offload(store, counter=counter)
    history: list[Message] = [user("u"), calls("a", "x"), result("a", 0, 20_000)]
    view = view_of(history)
    first = offload.transform(view, list(history))
    assert len(looked) > 0
    looked.clear()
    for number in range(20):
        history.append(user(f"u{number}"))
        assert offload.transform(view, list(history))[2] is first[2]
    assert looked == []
    assert offload.transform(view, history[1:])[1] is first[2]
    assert store.calls == 1
    assert list(offload.transform(view, [user("new")])) == [user("new")]


def test_a_message_that_another_extension_changed() -> None:
    """What is shown follows the message as it comes in, not only its id."""
    store = Store()
    offload = Offload(store)
    before: list[Message] = [calls("a", "x"), result("a", 0, 20_000)]
    after: list[Message] = [calls("a", "x"), result("a", 0, 30_000)]
    view = view_of(before)
    assert offload.transform(view, before)[1] != offload.transform(view, after)[1]
    assert store.calls == 2


def test_json_and_pictures() -> None:
    """JSON is stored and shown as text; a picture stays, and is never stored."""
    store = Store()
    message = result("a", 0)
    picture = ImagePart(b"\x00" * 10)
    mixed = replace(message, result=replace(message.result, parts=(JSONPart(["x" * 50_000]), picture, TextPart("end"))))
    _, made = shown(Offload(store), calls("a", "x"), mixed)
    assert isinstance(made, ToolMessage)
    assert [type(part) for part in made.parts] == [TextPart, ImagePart]
    (text,) = store.kept.values()
    assert text.startswith('["xxx')
    assert text.endswith('"]\nend')
    pictures = replace(message, result=replace(message.result, parts=(picture,) * 20))
    messages = (calls("a", "x"), pictures)
    assert message_tokens(pictures) > 8000
    assert Offload(store).transform(view_of(messages), messages) is messages


def test_a_long_reference() -> None:
    """Where the note alone takes all the room, the note alone is shown."""
    _, made = shown(Offload(lambda text: "x" * 4000, shown_tokens=100), calls("a", "x"), result("a", 0, 20_000))
    assert made.text == f"[… 100000 characters left out of the middle; the whole result is stored as {'x' * 4000} …]"


@pytest.mark.parametrize("store", [lambda text: 1 / 0, lambda text: None, lambda text: ""])
def test_a_store_that_fails(store: Any) -> None:
    """The result goes out whole, the failure is told, and the run goes on; later it is tried again."""
    works: list[bool] = []
    offload = Offload(lambda text: "there" if works else store(text))
    stage = Stage(call("read", what="huge"), say("Ok."), say("Fine."), tools=[read], extensions=[offload])
    assert stage.run("read it").ok
    assert stage.model.requests[1].messages[-1].text == HUGE
    assert stage.kinds.count("extension_failed") == 1
    works.append(True)
    assert stage.run("again").ok
    assert "stored as there" in stage.model.requests[2].messages[2].text
    assert_laws(stage)


def test_beside_auto_compact() -> None:
    """With `measure=offload.tokens` a context counts as it is sent: a huge result is no reason to compact."""
    offload, summarizer = Offload(Store(), max_tokens=500, shown_tokens=100), FakeSummarizer()
    auto = AutoCompact(CompactPolicy(2000, 500), summarizer, measure=offload.tokens)
    stage = Stage(call("read", what="huge"), say("Ok."), say("Fine."), tools=[read], extensions=[auto, offload],
                  clock=ManualClock())  # fmt: skip
    assert stage.run("read it").ok
    assert stage.run("again").ok
    assert (summarizer.asked, stage.kinds.count("extension_failed")) == ([], 0)
    sizes = [sum(map(offload.tokens, stage.messages)), estimate_tokens(stage.model.requests[-1].messages)]
    assert sizes[1] <= sizes[0] <= sizes[1] + 60
    assert_laws(stage)


def test_behind_another_transform() -> None:
    """It takes the messages as the extensions before it have made them."""
    store = Store()
    stage = Stage(call("read", what="huge"), say("Ok."), tools=[read], extensions=[
        Hooks(transform=lambda view, messages: [UserMessage("hello"), *messages]), Offload(store),
    ])  # fmt: skip
    assert stage.run("read it").ok
    assert stage.asked[1][0] == "U hello"
    assert "stored as" in stage.model.requests[1].messages[-1].text
    assert store.calls == 1
    assert_laws(stage)


def test_tokens_of_what_is_sent() -> None:
    """The estimate for a large result is that of what is shown, its pictures with it."""
    offload = Offload(Store(), max_tokens=1000, shown_tokens=100)
    big = result("a", 0, 20_000)
    assert offload.tokens(user("u")) == message_tokens(user("u"))
    assert 100 < offload.tokens(big) < 200
    pictured = replace(big, result=replace(big.result, parts=(*big.parts, ImagePart(b"1"))))
    assert offload.tokens(pictured) > offload.tokens(big) + 1000
    whole = replace(pictured, result=replace(big.result, parts=[TextPart("x" * 3000), *[ImagePart(b"1")] * 2]))
    assert shown(offload, whole) == (whole,)
    assert offload.tokens(whole) == message_tokens(whole)
    failed = replace(big, result=replace(big.result, status="failed", parts=(), error="x" * 20_000))
    [sent] = shown(offload, failed)
    assert message_tokens(sent) <= offload.tokens(failed) < 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"store": "there"}, "store must be a callable"),
        ({"max_tokens": 0}, "max_tokens must be an int of at least 40"),
        ({"shown_tokens": True}, "shown_tokens must be an int of at least 40"),
        ({"max_tokens": 100, "shown_tokens": 200}, "shown_tokens must not be above max_tokens"),
    ],
)
def test_bad_arguments(options: dict[str, Any], said: str) -> None:
    """What cannot be is refused by name, when it is made; what can be is shown."""
    given: dict[str, Any] = {"store": Store(), **options}
    with pytest.raises(InvalidArgument, match=said):
        Offload(given.pop("store"), **given)
    assert repr(Offload(Store())) == "Offload(max_tokens=8000, shown_tokens=1000)"
