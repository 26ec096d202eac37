"""Cases of approvals: a gate asks, the run settles waiting, a person answers, and exactly what was shown runs."""

from __future__ import annotations

from typing import Any

from gotato_py import (
    Agent,
    Ask,
    AssistantMessage,
    Deny,
    Hooks,
    Limits,
    Pending,
    RunStatus,
    ToolContext,
    ToolExecutionStart,
    ToolMessage,
    ToolResult,
    ToolResultStatus,
    TurnView,
    WaitingCall,
    tool,
)
from gotato_testkit import FakeTool, call, say

from .laws_of_waiting import NO, YES, answers, asks, assert_laws, paying, ran, results_of, waits_for
from .stage import Stage

BATCH = say("On it. ") + call("read", path="a") + call("pay", amount=5) + call("mail", to="Kari")
ASKING = asks("pay", "mail")


def made(*steps: Any, log: list[str] | None = None, **options: Any) -> Stage:
    """An agent that reads, pays and mails; it asks before it pays and before it mails."""
    written: list[str] = [] if log is None else log
    options.setdefault("extensions", [ASKING])
    return Stage(*(steps or (BATCH, say("Done."))), tools=paying(written), **options)


class TestC56ABatch:
    """One of the calls needs no approval, two do."""

    def test_c56_every_question_at_once(self) -> None:
        """The run settles waiting with all questions of the batch; what stood before the first has run, only that."""
        log: list[str] = []
        stage = made(log=log)
        result = stage.run()
        assert waits_for(result) == ["pay", "mail"]
        assert (log, ran(stage)) == (["read a"], ["read ok"])
        assert (result.error, result.text, stage.agent.status) == (None, "On it. ", "waiting")
        pay = result.waiting[0]
        answer = next(message for message in stage.messages if isinstance(message, AssistantMessage))
        assert pay == WaitingCall(f"{answer.id}:1", "call_2", "pay", {"amount": 5}, "May it pay?")
        assert result.waiting == stage.transcript.waiting
        result.raise_for_status()
        assert stage.kinds[-2:] == ["turn_end", "agent_end"]
        assert len(stage.asked) == 1
        assert_laws(stage)

    def test_c56_nothing_behind_a_question_runs(self) -> None:
        """A call behind the first question waits too, whether it is asked about or not."""
        log: list[str] = []
        stage = made(call("pay", amount=1) + call("read", path="b"), say("Done."), log=log)
        result = stage.run()
        assert (waits_for(result), log) == (["pay"], [])
        assert stage.run(None, answers=answers(result, pay=YES)).text == "Done."
        assert log == ["pay 1", "read b"]
        assert_laws(stage)

    def test_c56_answers_one_after_the_other(self) -> None:
        """Fewer answers than questions are recorded, and nothing runs; with the last one everything does, in order."""
        log: list[str] = []
        stage = made(log=log)
        first = stage.run()
        again = stage.run(None, answers=answers(first, mail=YES))
        assert waits_for(again) == ["pay"]
        assert [each.decision for each in stage.transcript.waiting] == [None, YES]
        assert (log, len(stage.asked), again.new_messages) == (["read a"], 1, ())
        done = stage.run(None, answers=answers(again, pay=NO))
        assert (done.status, done.text) == (RunStatus.COMPLETED, "Done.")
        assert log == ["read a", "mail Kari None"]
        assert ran(stage) == ["read ok", "pay blocked", "mail ok"]
        assert "too dear" in results_of(stage, "pay")[0].text
        assert stage.asked[-1][-3:] == ["R call_1 ok", "R call_2 blocked", "R call_3 ok"]
        assert_laws(stage)

    def test_c56_all_approved(self) -> None:
        """What is approved runs once each, in call order, and the run goes on to its answer."""
        log: list[str] = []
        stage = made(log=log)
        done = stage.run(None, answers=answers(stage.run(), mail=YES, pay=YES))
        assert (done.text, log) == ("Done.", ["read a", "pay 5", "mail Kari None"])
        assert (done.metrics.turns, done.metrics.tool_calls) == (1, 2)
        assert [type(message) for message in done.new_messages] == [ToolMessage, ToolMessage, AssistantMessage]
        assert_laws(stage)

    def test_c56_all_denied(self) -> None:
        """Nothing runs, the model is told why, and the run goes on."""
        log: list[str] = []
        stage = made(log=log)
        done = stage.run(None, answers=answers(stage.run(), pay=NO, mail=Deny()))
        assert (done.text, log) == ("Done.", ["read a"])
        assert ran(stage) == ["read ok", "pay blocked", "mail blocked"]
        assert "refused" in results_of(stage, "mail")[0].text
        assert_laws(stage)

    def test_c56_a_new_message_instead(self) -> None:
        """A new message drops what waited as blocked, before it is committed; what stood behind is not run."""
        log: list[str] = []
        stage = made(call("pay") + call("read") + call("mail"), say("As you like."), log=log)
        stage.run()
        done = stage.run("forget it")
        assert (done.text, log) == ("As you like.", [])
        assert ran(stage) == ["pay blocked", "read not_run", "mail blocked"]
        assert "superseded" in results_of(stage, "pay")[0].text
        assert stage.history[-2:] == ["U forget it", "A As you like. end_turn"]
        assert_laws(stage)

    def test_c56_a_call_that_waits_alone(self) -> None:
        """The questions of one answer wait, those of the next answer are asked in their turn."""
        log: list[str] = []
        stage = made(call("pay", amount=1), call("pay", amount=2), say("Done."), log=log)
        second = stage.run(None, answers=answers(stage.run(), pay=YES))
        assert (waits_for(second), log) == (["pay"], ["pay 1"])
        done = stage.run(None, answers=answers(second, pay=YES))
        assert (done.text, log) == ("Done.", ["pay 1", "pay 2"])
        assert_laws(stage)

    def test_c56_streamed(self) -> None:
        """A stream ends where the run waits, and a stream goes on with the answers."""
        log: list[str] = []
        stage = made(log=log)
        with stage.agent.stream("do it") as stream:
            kinds = [event.kind for event in stream]
        assert (kinds[-1], waits_for(stream.result)) == ("agent_end", ["pay", "mail"])
        with stage.agent.stream(answers=answers(stream.result, pay=YES, mail=YES)) as resumed:
            assert "".join(resumed.text) == "Done."
        started = [event.name for event in stage.events if isinstance(event, ToolExecutionStart)]
        assert (started, log[1:]) == (["read", "pay", "mail"], ["pay 5", "mail Kari None"])
        assert_laws(stage)


class TestC56BesideOtherThings:
    """Waiting beside workers, limits, pending work and calls that cannot run."""

    def test_c56_workers_finish_first(self) -> None:
        """Calls that run beside the question are waited for, and their results kept."""
        log: list[str] = []
        stage = made(call("read") + call("read", path="b") + call("pay"), log=log, limits=Limits(max_parallel_tools=3))
        result = stage.run()
        assert (waits_for(result), sorted(log)) == (["pay"], ["read ", "read b"])
        assert ran(stage) == ["read ok", "read ok"]
        stage.script.replace(say("Done."))
        assert stage.run(None, answers=answers(result, pay=YES)).text == "Done."
        assert_laws(stage)

    def test_c56_resumed_on_workers(self) -> None:
        """What was approved may run on worker threads like any other call."""
        log: list[str] = []
        stage = made(log=log, limits=Limits(max_parallel_tools=3))
        assert stage.run(None, answers=answers(stage.run(), pay=YES, mail=YES)).text == "Done."
        assert sorted(log) == ["mail Kari None", "pay 5", "read a"]
        assert_laws(stage)

    def test_c56_a_limit_of_calls(self) -> None:
        """A limit counts the calls of one run: the one that waits, and the one that goes on."""
        log: list[str] = []
        stage = made(log=log, limits=Limits(max_tool_calls=1))
        result = stage.run()
        assert (waits_for(result), result.metrics.tool_calls) == (["pay", "mail"], 1)
        done = stage.run(None, answers=answers(result, pay=YES, mail=YES))
        assert (done.status, log) == (RunStatus.LIMITED, ["read a", "pay 5"])
        assert ran(stage) == ["read ok", "pay ok", "mail not_run"]
        assert_laws(stage)

    def test_c56_the_last_turn(self) -> None:
        """With no turn left for its results nobody is asked about a batch."""
        stage = made(limits=Limits(max_turns=1))
        assert stage.run().status is RunStatus.LIMITED
        assert set(stage.statuses) == {ToolResultStatus.NOT_RUN}
        assert_laws(stage)

    def test_c56_beside_pending_work(self) -> None:
        """Work that was accepted elsewhere has its result; only the approval waits."""
        stage = Stage(
            call("order") + call("pay"), say("Done."),
            tools=[FakeTool("order", Pending("order-7")), FakeTool("pay", "paid")], extensions=[asks("pay")],
        )  # fmt: skip
        result = stage.run()
        assert (waits_for(result), ran(stage)) == (["pay"], ["order pending"])
        assert stage.run(None, answers=answers(result, pay=YES)).text == "Done."
        assert ran(stage) == ["order pending", "pay ok"]
        assert_laws(stage)

    def test_c56_calls_that_cannot_run(self) -> None:
        """Unknown tools and wrong arguments are no question: their results come where they stand in the batch."""
        log: list[str] = []
        stage = made(call("raed") + call("pay", amount="much") + call("pay", amount=1) + call("raed"), log=log)
        result = stage.run()
        assert (waits_for(result), ran(stage)) == (["pay"], ["raed not_run", "pay not_run"])
        stage.script.replace(say("Done."))
        assert stage.run(None, answers=answers(result, pay=YES)).text == "Done."
        assert ran(stage) == ["raed not_run", "pay not_run", "pay ok", "raed not_run"]
        assert_laws(stage)

    def test_c56_a_tool_that_is_gone(self) -> None:
        """A tool that no longer exists when the answer comes is not run, and the model is told."""
        stage = made(call("pay"))
        result = stage.run()
        other = Stage(say("Pity."), tools=[], transcript=stage.transcript)
        assert other.run(None, answers=answers(result, pay=YES)).text == "Pity."
        assert ran(other) == ["pay not_run"]
        assert_laws(other)

    def test_c56_a_tool_of_a_source(self) -> None:
        """A tool that a source gives is there again when the run goes on, and gets the deps of that run."""
        seen: list[object] = []

        class Source:
            """Gives one tool, made anew each time."""

            def tools(self, view: TurnView) -> list[Any]:
                """The tool."""

                def pay(use: ToolContext[Any]) -> str:
                    """Pays."""
                    seen.append(use.deps)
                    return "paid"

                return [tool(pay)]

        stage = Stage(call("pay"), say("Done."), extensions=[asks("pay")])
        stage.agent = Agent(stage.model, tools=[Source()], transcript=stage.transcript, extensions=[
            Hooks(observe=stage.events.append), asks("pay"),
        ])  # fmt: skip
        result = stage.run(deps="first")
        assert stage.run(None, answers=answers(result, pay=YES), deps="second").text == "Done."
        assert (seen, ran(stage)) == (["second"], ["pay ok"])
        assert_laws(stage)

    def test_c56_steered_while_it_resumes(self) -> None:
        """A message that comes while the batch goes on is delivered behind its results, before the model is asked."""

        def steer(use: ToolContext[Any], result: ToolResult) -> ToolResult:
            if use.name == "pay":
                stage.agent.steer("hurry")
            return result

        stage = made(extensions=[ASKING, Hooks(after_tool=steer)])
        assert stage.run(None, answers=answers(stage.run(), pay=YES, mail=YES)).text == "Done."
        assert stage.asked[-1][-3:] == ["R call_2 ok", "R call_3 ok", "U hurry"]
        assert_laws(stage)

    def test_c56_queued_messages_come_back(self) -> None:
        """What was queued for a run that settles waiting was not delivered, and the result says so."""

        def gate(use: ToolContext[Any]) -> Ask:
            stage.agent.steer("hurry")
            stage.agent.follow_up("and then?")
            return Ask("May it?")

        stage = made(call("pay"), extensions=[Hooks(before_tool=gate)])
        result = stage.run()
        assert [message.text for message in result.undelivered] == ["hurry", "and then?"]
        assert (waits_for(result), [line for line in stage.history if line[0] == "U"]) == (["pay"], ["U do it"])
        assert_laws(stage)

    def test_c56_no_extension_is_asked_to_settle(self) -> None:
        """A run that waits has not come to an end: `should_stop` and `before_settle` are asked when it does."""
        said: list[str] = []

        def stop(view: Any) -> None:
            said.append(f"stop {[result.result.status.value for result in view.result.results]}")

        def settle(view: Any) -> None:
            said.append(f"settle {view.result.text}")

        stage = made(extensions=[ASKING, Hooks(should_stop=stop, before_settle=settle)])
        result = stage.run()
        assert said == []
        stage.run(None, answers=answers(result, pay=YES, mail=NO))
        assert said == ["stop ['ok', 'blocked']", "stop []", "settle Done."]
        assert_laws(stage)

    def test_c56_stopped_where_it_resumed(self) -> None:
        """The turn that waited ends with its batch: an extension may stop the run there, before the model is asked."""

        def stop(view: Any) -> str | None:
            calls = [] if view.result.message is None else [each.name for each in view.result.message.tool_calls]
            return "it is paid" if "pay" in calls else None

        log: list[str] = []
        stage = made(log=log, extensions=[ASKING, Hooks(should_stop=stop)])
        done = stage.run(None, answers=answers(stage.run(), pay=YES, mail=YES))
        assert (done.status, done.stopped_by, done.text) == (RunStatus.COMPLETED, "it is paid", "")
        assert (len(stage.asked), len(log)) == (1, 3)
        assert_laws(stage)
