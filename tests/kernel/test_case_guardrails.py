"""Cases of guardrails: an answer is checked before it is committed and before any of its tools starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import (
    Accept,
    AnswerRejected,
    AssistantMessage,
    ErrorCode,
    ExtensionFailed,
    ExtensionFailure,
    Hooks,
    InvalidArgument,
    Limits,
    MemoryTranscript,
    MessageDiscarded,
    Reject,
    RunFailed,
    RunStatus,
    TextPart,
    TurnView,
    UserMessage,
)
from gotato_testkit import call, say

from .laws import assert_laws
from .notes import fail, note
from .stage import Stage

MAIL = say("I will write to them. ") + call("mail", to="all") + call("mail", to="Kari")


MAIL_TEXT = "I will write to them. "


def mail(to: str = "") -> str:
    """Mails."""
    return f"mailed {to}"


def guarded(*guards: Any, steps: Any = None, **options: Any) -> Stage:
    """A stage that mails, guarded by these."""
    hooks = [
        each if isinstance(each, Hooks) else Hooks(check_answer=each, name=f"guard{at}")
        for at, each in enumerate(guards, 1)
    ]
    return Stage(*(steps or [MAIL, say("Done.")]), tools=[mail], extensions=hooks, **options)


def rejecting(word: str, *, redact: bool = False) -> Callable[[TurnView, AssistantMessage], Accept | Reject]:
    """A guardrail that rejects answers with the word in them."""

    def check(view: TurnView, message: AssistantMessage) -> Accept | Reject:
        return Reject(f"no {word}", redact=redact) if word in message.text else Accept()

    return check


class TestC41Rejected:
    """A guardrail rejects an answer."""

    def test_c41_with_calls(self) -> None:
        """The answer stays, none of its tools starts, each call has a result that names the guardrail; it fails."""
        stage = guarded(rejecting("write"))
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.FAILED, "I will write to them. ")
        assert isinstance(result.error, AnswerRejected)
        assert (result.error.code, str(result.error)) == (
            ErrorCode.ANSWER_REJECTED,
            "guard1 rejected the answer: no write",
        )
        assert stage.history == ["U do it", "A I will write to them.  [mail, mail] tool_calls", *NOT_RUN]
        assert all("guard1 rejected the answer: no write" in message.text for message in stage.results)
        assert (sum(stage.effects.values()), len(stage.asked)) == (0, 1)
        assert "tool_execution_start" not in stage.kinds
        with pytest.raises(RunFailed) as raised:
            result.raise_for_status()
        assert raised.value.code is ErrorCode.ANSWER_REJECTED
        assert_laws(stage)

    def test_c41_redacted(self) -> None:
        """With `redact` nothing of the answer is kept, in the transcript or in the result: it was taken back."""
        stage = guarded(rejecting("write", redact=True))
        result = stage.run()
        assert (result.status, result.text, result.message) == (RunStatus.FAILED, "", None)
        assert (stage.history, sum(stage.effects.values())) == (["U do it"], 0)
        (taken_back,) = (event for event in stage.events if isinstance(event, MessageDiscarded))
        assert taken_back.error is not None
        assert taken_back.error.code is ErrorCode.ANSWER_REJECTED
        assert [message.text for message in result.new_messages] == ["do it"]
        assert_laws(stage)

    def test_c41_the_next_request(self) -> None:
        """The next run shows the model what was rejected and kept, and nothing of what was redacted."""
        kept = guarded(rejecting("write"), steps=[MAIL, say("Sorry.")])
        kept.run()
        assert kept.run("why?").text == "Sorry."
        assert kept.asked[-1] == ["U do it", "A I will write to them.  [mail, mail] tool_calls", *NOT_RUN, "U why?"]
        redacted = guarded(rejecting("write", redact=True), steps=[MAIL, say("Sorry.")])
        redacted.run()
        assert redacted.run("why?").text == "Sorry."
        assert redacted.asked[-1] == ["U do it", "U why?"]
        assert_laws(kept)
        assert_laws(redacted)

    @pytest.mark.parametrize("redact", [False, True])
    def test_c41_plain_text(self, redact: bool) -> None:
        """An answer without calls is checked like one with calls."""
        stage = guarded(rejecting("secret", redact=redact), steps=[say("The secret is 7.")])
        result = stage.run()
        assert isinstance(result.error, AnswerRejected)
        assert stage.history[1:] == ([] if redact else ["A The secret is 7. end_turn"])
        assert result.text == ("" if redact else "The secret is 7.")
        assert_laws(stage)

    def test_c41_the_task_comes_again(self) -> None:
        """A task whose answer was rejected is not answered by it: delivered again, the model is told and asked."""
        task = UserMessage("do it", id="task-1")
        stage = guarded(rejecting("secret"), steps=[say("The secret is 7."), say("I cannot say.")])
        assert stage.run(task).status is RunStatus.FAILED
        again = stage.run(task)
        assert (again.status, again.text) == (RunStatus.COMPLETED, "I cannot say.")
        assert stage.asked[-1][-1] == "U Your last answer was rejected: no secret. Answer again."
        assert [line for line in stage.history if line[0] == "U"] == ["U do it"]
        assert stage.run(task).text == "I cannot say."
        assert_laws(stage)

    def test_c41_going_on(self) -> None:
        """`run()` goes on from a rejected answer, in another process too: the model is told why it was none."""
        transcript = MemoryTranscript()
        guarded(rejecting("secret"), steps=[say("The secret is 7.")], transcript=transcript).run()
        stored = MemoryTranscript.from_dict(transcript.to_dict())
        stage = guarded(rejecting("secret"), steps=[say("I cannot say.")], transcript=stored)
        assert stage.run(None).text == "I cannot say."
        assert stage.asked[-1][-1] == "U Your last answer was rejected: no secret. Answer again."
        with pytest.raises(InvalidArgument, match="finished"):
            stage.run(None)
        assert_laws(stage)

    def test_c41_in_a_later_turn(self) -> None:
        """What ran in the turns before stays as it was: the effects happened."""
        stage = guarded(rejecting("secret"), steps=[MAIL, say("The secret is 7.")])
        result = stage.run()
        assert isinstance(result.error, AnswerRejected)
        assert [status.value for status in stage.statuses] == ["ok", "ok"]
        assert_laws(stage)

    @pytest.mark.parametrize("redact", [False, True])
    def test_c41_the_answer_of_a_wrap_up(self, redact: bool) -> None:
        """The last answer after a limit is checked too: a rejected one fails the run, and is not handed out as a text
        of a run that was merely limited."""
        limits = Limits(max_turns=1, wrap_up=True)
        stage = guarded(rejecting("secret", redact=redact), steps=[MAIL, say("The secret is 7.")], limits=limits)
        result = stage.run()
        assert isinstance(result.error, AnswerRejected)
        assert (result.status, result.text) == (RunStatus.FAILED, MAIL_TEXT if redact else "The secret is 7.")
        assert_laws(stage)


NOT_RUN = ["R call_1 not_run", "R call_2 not_run"]


class TestC41Order:
    """Who is asked, when, and with what."""

    def test_c41_in_reverse_order_to_the_first_that_rejects(self) -> None:
        """The extension that was installed last is asked first; one that rejects is the last that is asked."""
        asked: list[int] = []

        def guard(number: int, verdict: Any) -> Any:
            return lambda view, message: note(asked, number, verdict)

        stage = guarded(guard(1, Accept()), guard(2, Reject("two")), guard(3, Accept()))
        assert str(stage.run().error) == "guard2 rejected the answer: two"
        assert asked == [3, 2]
        assert_laws(stage, again=False)

    def test_c41_what_a_guardrail_sees(self) -> None:
        """It sees the whole answer, with the id under which it would be kept, before it is in the transcript."""
        seen: list[Any] = []

        def check(view: TurnView, message: AssistantMessage) -> Accept:
            seen.append((message.id, message.text, len(message.tool_calls), len(view.transcript.messages), view.turn))
            return Accept()

        stage = guarded(check)
        assert stage.run().text == "Done."
        answers = [message for message in stage.messages if isinstance(message, AssistantMessage)]
        assert seen == [(answers[0].id, "I will write to them. ", 2, 1, 1), (answers[1].id, "Done.", 0, 4, 2)]
        assert_laws(stage)

    def test_c41_before_the_message_is_told(self) -> None:
        """No `message_end` tells of an answer that is rejected and withheld; of one that is kept there is one."""
        for redact, ends in ((True, 1), (False, 2)):
            stage = guarded(rejecting("write", redact=redact))
            stage.run()
            assert stage.kinds.count("message_end") == ends
            assert_laws(stage)

    def test_c41_silence_is_not_checked(self) -> None:
        """Silence after a tool is no message: there is nothing to check."""
        seen: list[str] = []

        def check(view: TurnView, message: AssistantMessage) -> Accept:
            seen.append(message.text)
            return Accept()

        stage = guarded(check, steps=[call("mail"), say()])
        assert stage.run().status is RunStatus.COMPLETED
        assert seen == [""]
        assert_laws(stage)


class TestC41AGuardrailFails:
    """A guardrail raises, or returns what is no verdict: what was to judge the answer could not."""

    @pytest.mark.parametrize(
        "act",
        [fail, lambda: None, lambda: True, lambda: "fine", lambda: Accept],
        ids=["raises", "None", "True", "a text", "the class"],
    )
    def test_c41_withholds(self, act: Callable[[], Any]) -> None:
        """The answer is withheld, nothing of it runs or is kept, and the run fails."""
        stage = guarded(lambda view, message: act())
        result = stage.run()
        assert (result.status, result.text) == (RunStatus.FAILED, "")
        assert isinstance(result.error, ExtensionFailure)
        assert "guard1 failed at check_answer" in str(result.error)
        assert (stage.history, sum(stage.effects.values())) == (["U do it"], 0)
        assert stage.kinds.count("message_discarded") == stage.kinds.count("extension_failed") == 1
        assert_laws(stage, again=False)

    def test_c41_advisory(self) -> None:
        """One that is only advisory lets the answer pass; the others still judge it."""
        advice = Hooks(check_answer=lambda view, message: fail(), advisory=True, name="advice")
        stage = guarded(rejecting("secret"), advice)
        assert stage.run().text == "Done."
        told = [event.extension for event in stage.events if isinstance(event, ExtensionFailed)]
        assert told == ["advice", "advice"]
        assert_laws(stage)

    def test_c41_an_interrupt(self) -> None:
        """Ctrl-C in a guardrail: the answer that was not judged is withheld, and the interrupt comes out."""

        def interrupted(view: TurnView, message: AssistantMessage) -> Accept:
            raise KeyboardInterrupt

        stage = guarded(interrupted)
        with pytest.raises(KeyboardInterrupt):
            stage.run()
        assert stage.history == ["U do it"]
        assert_laws(stage, again=False)

    def test_c41_the_time_passes(self) -> None:
        """The deadline passes while a guardrail judges: what was not judged is withheld."""

        def slow(view: TurnView, message: AssistantMessage) -> Accept:
            assert view.scope is not None
            stage.cancel()
            view.scope.check()
            return Accept()

        stage = guarded(slow)
        result = stage.run()
        assert (result.status, result.text, stage.history) == (RunStatus.CANCELLED, "", ["U do it"])
        assert "extension_failed" not in stage.kinds
        assert_laws(stage, again=False)

    def test_c41_what_it_may_say(self) -> None:
        """A rejection needs a reason: somebody will want to know."""
        for given in ("", "  ", None, TextPart("no")):
            with pytest.raises(InvalidArgument, match=r"Reject\.reason"):
                Reject(given)  # type: ignore[arg-type]  # on purpose
        stage = guarded(lambda view, message: Reject("\ud800"))
        assert str(stage.run().error) == "guard1 rejected the answer: \ufffd"
        assert_laws(stage, again=False)
