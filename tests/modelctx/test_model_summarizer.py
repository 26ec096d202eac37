"""Summaries by a model: what it is asked, what of its answers is taken, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from gotato_modelctx.model_summarizer import HEADINGS, INSTRUCTIONS, ModelSummarizer
from gotato_modelctx.summaries import FRAME, Summary, summary_message
from gotato_modelctx.tokens import estimate_tokens
from gotato_py import (
    AuthenticationFailed,
    Cancelled,
    ContentFiltered,
    DeadlineExceeded,
    EmptyResponse,
    GotatoError,
    InvalidArgument,
    LimitExceeded,
    Message,
    ModelOptions,
    ModelProtocolError,
    Overloaded,
    RetryPolicy,
    Scope,
    TextPart,
    Usage,
)
from gotato_testkit import Do, ManualClock, Raise, ScriptedModel, Stall, Step, Wait, call, say, think

from .fake_summarizers import answer, calls, result, user

TALK: list[Message] = [user("u1", 3), calls("a1", "look"), result("a1", 0, 3), answer("a2", 3)]


def summarized(*steps: Step, messages: Any = TALK, scope: Scope | None = None, **options: Any) -> tuple[Summary, Any]:
    """The summary, and the requests that were made for it."""
    model = ScriptedModel(steps)
    summarizer = ModelSummarizer(model, retry=RetryPolicy(base=0), **options)
    return summarizer.summarize(messages, scope or Scope(clock=ManualClock())), model.requests


def test_one_request_of_plain_text() -> None:
    """Calls and results are written out in one user message, so nothing in the request can lack its partner."""
    summary, (request,) = summarized(say(" Short.\n", usage=Usage(90, 9)))
    assert (summary, summary.usage) == (FRAME + "Short.", Usage(90, 9))
    (message,) = request.messages
    assert [type(part) for part in message.parts] == [TextPart]
    assert message.text == (
        "<conversation>\n[user]\nu1 word word word \n\n[assistant]\n[calls look with {}]\n\n[result of look: ok]\n"
        "word word word \n\n[assistant]\na2 word word word \n</conversation>\n\nWrite the summary."
    )
    assert (request.system, request.tools, request.options) == (INSTRUCTIONS, (), ModelOptions(max_tokens=2000))


def test_an_earlier_summary_is_brought_up_to_date() -> None:
    """It is handed in as what it is, not as a part of the conversation."""
    messages = [summary_message(FRAME + "Old."), *TALK[:1]]
    summary, (request,) = summarized(
        say("New."), messages=messages, max_tokens=7, options=ModelOptions(temperature=0.5)
    )
    assert summary == FRAME + "New."
    assert request.messages[0].text == (
        "<earlier-summary>\nOld.\n</earlier-summary>\n\n<conversation>\n[user]\nu1 word word word \n</conversation>\n\n"
        "Write the new summary."
    )
    assert request.options == ModelOptions(temperature=0.5, max_tokens=7)


def test_an_earlier_summary_alone_costs_nothing() -> None:
    """Where nothing is new, the earlier summary is the answer."""
    for most in (None, 1000):
        summary, requests = summarized(messages=[summary_message(FRAME + "Old.")], max_input_tokens=most)
        assert (summary, len(requests)) == (FRAME + "Old.", 0)


def test_a_window_that_is_too_small_for_all_of_it() -> None:
    """The messages are cut into requests that fit, each of which gets the summary of those before."""
    model = ScriptedModel([say(f"Summary {number}.", usage=Usage(10, 1)) for number in range(1, 9)])
    history = [*[user(f"u{number}", 200) for number in range(6)], user("huge", 5000)]
    summarizer = ModelSummarizer(model, max_tokens=50, max_input_tokens=1000, max_part_chars=100_000)
    summary = summarizer.summarize(history, Scope())
    asked = model.requests
    assert 3 <= len(asked) < 7
    assert all(estimate_tokens(request) <= 1000 for request in asked)
    for number, request in enumerate(asked):
        assert (f"<earlier-summary>\nSummary {number}." in request.messages[0].text) is (number > 0)
    text = "".join(request.messages[0].text for request in asked)
    assert [f"[user]\nu{number} " in text for number in range(6)] == [True] * 6
    assert "characters left out" in asked[-1].messages[0].text
    assert summary == f"{FRAME}Summary {len(asked)}."
    assert summary.usage == Usage(10 * len(asked), len(asked))


def test_what_stands_around_the_messages_counts_for_the_window() -> None:
    """Summaries as long as they may be, and messages that fill each request: none is larger than the window."""
    model = ScriptedModel([say("x" * 400)] * 3)
    summarizer = ModelSummarizer(model, max_tokens=100, max_input_tokens=600, max_part_chars=100_000)
    summarizer.summarize([user(f"u{number}", 5000) for number in range(3)], Scope())
    assert max(estimate_tokens(request) for request in model.requests) <= 600


def test_long_texts_are_shown_in_part() -> None:
    """A tool's long result goes in by its head and tail."""
    _, (request,) = summarized(say("Short."), messages=[user("u", 2000)], max_part_chars=100)
    assert len(request.messages[0].text) < 300
    assert "9904 characters left out" not in request.messages[0].text
    assert "characters left out" in request.messages[0].text


@pytest.mark.parametrize(
    ("steps", "kind", "said"),
    [
        ([call("look")], ModelProtocolError, "the summary is a tool call"),
        ([say("Cut", stop_reason="max_tokens")], LimitExceeded, "cut at 2000 tokens; give ModelSummarizer a larger"),
        ([say("No.", stop_reason="content_filter")], ContentFiltered, "refused by the provider's content filter"),
        ([say("Hm", stop_reason="pause")], ModelProtocolError, "ended with 'pause'"),
        ([say(), say()], EmptyResponse, "nothing"),
        ([think("hm", signature="s")] * 2, EmptyResponse, "nothing"),
        ([Raise(AuthenticationFailed("no key"))], AuthenticationFailed, "no key"),
        ([Raise(Overloaded("busy"))] * 3, Overloaded, "busy"),
    ],
)
def test_what_is_no_summary(steps: list[Step], kind: type[GotatoError], said: str) -> None:
    """An answer that is empty, cut, refused, a call or none is an error that says so; no text of it is told."""
    with pytest.raises(kind, match=said) as raised:
        summarized(*steps)
    assert "word" not in str(raised.value)


def test_a_failure_tells_what_was_spent() -> None:
    """The tokens of an answer that cannot be used are in the error's details."""
    with pytest.raises(LimitExceeded) as raised:
        summarized(say("Cut", stop_reason="max_tokens", usage=Usage(90, 9)))
    assert raised.value.limit == "max_tokens"
    assert raised.value.details == {"input_tokens": 90, "output_tokens": 9}


def test_retrying() -> None:
    """A busy provider and one silence are tried again, as an agent would."""
    summary, requests = summarized(Raise(Overloaded("busy")), say(), say("Short."))
    assert (summary, len(requests)) == (FRAME + "Short.", 3)


def test_its_own_time() -> None:
    """A model that does not come back is given up after `timeout`, while the run's own scope goes on."""
    scope = Scope(clock=ManualClock())
    with pytest.raises(DeadlineExceeded):
        summarized([Wait(400), *say("Late.")], scope=scope)
    assert not scope.cancelled
    summary, _ = summarized([Wait(400), *say("Late.")], timeout=None)
    assert summary == FRAME + "Late."


def test_the_scope_ends_it() -> None:
    """The end of the run's scope ends the request."""
    scope = Scope()
    with pytest.raises(Cancelled, match="enough"):
        summarized([Do(lambda: scope.cancel("enough")), Stall()], scope=scope)


def test_headings() -> None:
    """A structured summary has exactly its headings, in their order, however the model wrote them."""
    said = "Here it is:\n**Decisions:**\n- blue\n\n# goal\nA house.\n## Weather\nSunny.\nFacts:\n- 3 rooms\n"
    summary, (request,) = summarized(say(said), headings=HEADINGS)
    assert summary == FRAME + (
        "## Goal\nHere it is:\nA house.\n## Weather\nSunny.\n\n## Decisions\n- blue\n\n## Done\nnone\n\n"
        "## Open work\nnone\n\n## Facts\n- 3 rooms"
    )
    assert request.system.startswith(INSTRUCTIONS)
    assert "## Goal\n## Decisions\n## Done\n## Open work\n## Facts\n" in request.system
    with pytest.raises(ModelProtocolError, match="none of the headings asked for: Goal, Decisions"):
        summarized(say("The goal is a house."), headings=HEADINGS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"headings": "Goal"}, "headings must be a sequence of texts"),
        ({"headings": [" "]}, "headings must be a sequence of texts"),
        ({"max_tokens": 0}, "max_tokens must be an int of at least 1"),
        ({"max_part_chars": 1.5}, "max_part_chars must be an int of at least 1"),
        ({"max_input_tokens": True}, "max_input_tokens must be an int of at least 1"),
    ],
)
def test_bad_arguments(options: dict[str, Any], said: str) -> None:
    """What cannot be is refused by name, when it is made."""
    with pytest.raises(InvalidArgument, match=said):
        ModelSummarizer(ScriptedModel([]), **options)
    with pytest.raises(InvalidArgument, match="model must have a method stream"):
        ModelSummarizer("model")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="messages is empty"):
        ModelSummarizer(ScriptedModel([])).summarize([], Scope())


def test_its_repr() -> None:
    """It names the model, or its class."""

    class Nameless:
        def stream(self, request: object, scope: Scope) -> Any:
            raise NotImplementedError

    assert repr(ModelSummarizer(ScriptedModel([]), max_tokens=9)) == "ModelSummarizer('scripted', max_tokens=9)"
    assert repr(ModelSummarizer(Nameless())) == "ModelSummarizer('Nameless', max_tokens=2000)"
