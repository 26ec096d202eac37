"""Cases of a transcript that changes hands: what a run has read of it counts only if nobody came in between, and what
was left behind, even in the middle of taking over, holds up nobody."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import pytest

from gotato_py import (
    Agent,
    Approve,
    Ask,
    AssistantMessage,
    Busy,
    Compaction,
    Deny,
    Done,
    Event,
    Hooks,
    InvalidArgument,
    InvalidState,
    MemoryTranscript,
    MessageView,
    RunHold,
    RunRecord,
    RunStatus,
    RunStream,
    StopReason,
    StoreFailure,
    ToolCall,
    ToolMessage,
    ToolResultCommitted,
    ToolResultStatus,
    Transcript,
    TurnView,
    Usage,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_testkit import Do, FakeTool, ScriptedModel, call, say

from .hosts import PATIENCE_S
from .interrupts import AtLine, LineInterrupt
from .test_case_one_run import agent_on, assert_sendable, drop_half_read

T = TypeVar("T", bound=Transcript)


class Between(MemoryTranscript):
    """A transcript where something happens, once, between what a run reads and what it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.happens: list[Callable[[], object]] = []
        self.records: list[RunRecord] = []

    def begin_run(self, run_id: str) -> None:
        if self.happens:
            self.happens.pop()()
        super().begin_run(run_id)

    def end_run(self, record: RunRecord) -> None:
        self.records.append(record)
        super().end_run(record)


class Foreign(Between):
    """The same, of an author who knows nothing of holds."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def begin_run(self, run_id: str) -> None:
        if self.happens:
            self.happens.pop()()
        if self.runs:
            raise Busy("busy", run_id=self.runs[0], since=0.0)
        self.runs.append(run_id)

    def end_run(self, record: RunRecord) -> None:
        self.records.append(record)
        self.runs.clear()


class Mirrored(MemoryTranscript, Generic[T]):
    """A transcript that gives its runs on to another one."""

    def __init__(self, mirror: T) -> None:
        super().__init__()
        self.mirror = mirror

    def begin_run(self, run_id: str) -> None:
        super().begin_run(run_id)
        begin_run: Callable[[str], None] = getattr(self.mirror, "begin_run")  # noqa: B009  # optional in a Transcript
        begin_run(run_id)


KINDS = pytest.mark.parametrize("kind", [Between, Foreign])


class Payments:
    """A tool that pays, and counts how often."""

    def __init__(self) -> None:
        self.paid = 0

    def pay(self) -> str:
        """Pays."""
        self.paid += 1
        return "paid"


def asking(payments: Payments, transcript: MemoryTranscript, *steps: Any) -> Agent:
    """An agent that asks before it pays."""
    gate = Hooks(before_tool=lambda use: Ask("pay?"))
    return Agent(ScriptedModel(list(steps)), transcript=transcript, tools=[payments.pay], extensions=[gate])


@pytest.mark.parametrize("again", [1, 2])
def test_answers_that_come_again(again: int) -> None:
    """The same answers, delivered again when the first of the calls has been started and cut off, go on with the
    others; when all is done they are refused."""
    payments, transcript = Payments(), MemoryTranscript()
    waiting = asking(payments, transcript, call("pay") + call("pay")).run("pay").waiting
    answers = {record.key: Approve() for record in waiting}
    streams = [asking(payments, transcript, say("never")).stream(answers=answers)]
    while next(streams[0]).kind != "tool_execution_start":
        pass
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()
    with pytest.raises(InvalidArgument, match="answered before"):
        asking(payments, transcript).run(answers={**answers, waiting[1].key: Deny("no")})
    assert asking(payments, transcript, say("Paid one.")).run(answers=answers).text == "Paid one."
    for _ in range(again):
        with pytest.raises(InvalidArgument, match="no call of this agent waits"):
            asking(payments, transcript).run(answers=answers)
    assert payments.paid == 1
    assert_sendable(transcript)


class TestAnotherRunInBetween:
    """Another run begins and ends after a run has read the transcript, and before it has it."""

    @KINDS
    def test_a_task_that_is_delivered_twice_at_once(self, kind: type[Between]) -> None:
        """Two workers get the same task: one does it, the other has the answer of the first."""
        payments, transcript = Payments(), kind()
        workers = [
            Agent(ScriptedModel([call("pay"), say("Paid.")]), transcript=transcript, tools=[payments.pay])
            for _ in range(2)
        ]
        task = UserMessage("pay the bill", id="task-1")
        transcript.happens.append(lambda: workers[1].run(task))
        result = workers[0].run(task)
        assert (result.text, len(result.new_messages), payments.paid) == ("Paid.", 0, 1)
        assert [message.id for message in transcript.messages if message.role == "user"] == ["task-1"]
        assert_sendable(transcript)

    @KINDS
    def test_two_people_answer_at_once(self, kind: type[Between]) -> None:
        """The first answer counts; the other is refused as one to a call that waits no more, and begins nothing."""
        payments, transcript = Payments(), kind()
        (waiting,) = asking(payments, transcript, call("pay")).run("pay").waiting
        late, first = asking(payments, transcript, say("never")), asking(payments, transcript, say("Paid."))
        transcript.happens.append(lambda: first.run(answers={waiting.key: Approve()}))
        with pytest.raises(InvalidArgument, match="no call of this agent waits"):
            late.run(answers={waiting.key: Deny("no")})
        assert (payments.paid, transcript.messages[-1].text) == (1, "Paid.")
        assert_sendable(transcript)

    @KINDS
    def test_a_call_begins_to_wait(self, kind: type[Between]) -> None:
        """A run that would go on is refused once a person is asked, and the question stays."""
        payments, transcript = Payments(), kind()
        transcript.append(UserMessage("pay"))
        late, first = asking(payments, transcript, say("never")), asking(payments, transcript, call("pay"))
        transcript.happens.append(first.run)
        with pytest.raises(InvalidState, match="calls wait for an answer"):
            late.run()
        (waiting,) = transcript.waiting
        done = asking(payments, transcript, say("Paid.")).run(answers={waiting.key: Approve()})
        assert (done.text, payments.paid) == ("Paid.", 1)

    def test_it_is_compacted(self) -> None:
        """The request shows what the transcript holds, not what was read before."""
        transcript = Between()
        agent_on(transcript, say("One")).run("first")
        model = ScriptedModel([say("Seven."), say("Eight.")])
        agent = Agent(model, transcript=transcript)

        def go_on() -> None:
            transcript.replace(Compaction(UserMessage("Summary."), transcript.messages[-1].id))
            agent_on(transcript, say("Noted.")).run("the code is 7")

        transcript.happens.append(go_on)
        agent.run("the code?")
        assert [message.text for message in model.requests[0].messages] == [
            "Summary.", "the code is 7", "Noted.", "the code?",
        ]  # fmt: skip
        agent.run("and the next?")
        assert [message.text for message in model.requests[1].messages][-2:] == ["Seven.", "and the next?"]
        assert_sendable(transcript)

    def test_what_was_wrong_with_an_answer_that_has_gone_is_not_told(self) -> None:
        """A task whose answer did not fit, and has gone from the transcript meanwhile, is a new one."""
        transcript = Between()
        task = UserMessage("a number", id="task-1")
        agent_on(transcript, say("seven")).run(task)

        def go_on() -> None:
            agent_on(transcript, say("On.")).run("and on")
            transcript.replace(Compaction(UserMessage("Summary."), transcript.messages[-1].id))

        transcript.happens.append(go_on)
        model = ScriptedModel([say("7")], capabilities=["response_schema"])
        assert Agent(model, transcript=transcript).run(task, output=int).output == 7
        assert [message.text for message in model.requests[0].messages] == ["Summary.", "a number"]

    @KINDS
    def test_what_waited_has_been_done(self, kind: type[Between]) -> None:
        """A run that was to go on with answered calls finds them done, and does not record them as waiting again."""
        payments, transcript = Payments(), kind()
        transcript.append(UserMessage("pay"))
        asked = transcript.append(AssistantMessage((), tool_calls=(ToolCall("c1", "pay"),)))
        transcript.mark_waiting([WaitingCall(f"{asked.id}:0", "c1", "pay", {}, "pay?", decision=Approve())])
        first = asking(payments, transcript, [*say("Paid, and")[:-1], Done(StopReason.MAX_TOKENS)])
        late = asking(payments, transcript, say("that is all."))
        transcript.happens.append(first.run)
        result = late.run()
        assert (result.text, result.waiting, payments.paid) == ("that is all.", (), 1)
        assert transcript.waiting == ()
        assert_sendable(transcript)

    @KINDS
    def test_who_is_refused_has_failed(self, kind: type[Between]) -> None:
        """What `begin_run` has begun `end_run` ends: with the record of a run that failed; the transcript is free."""
        transcript = kind()
        transcript.append(UserMessage("hi"))
        late = agent_on(transcript)
        transcript.happens.append(agent_on(transcript, say("Hello.")).run)
        with pytest.raises(InvalidArgument, match="finished"):
            late.run()
        assert [(record.status, record.error) for record in transcript.records] == [
            ("completed", ""), ("failed", "invalid_argument"),
        ]  # fmt: skip
        assert late.status == "idle"
        assert_sendable(transcript)

    @KINDS
    def test_a_transcript_that_cannot_be_read_then(self, kind: type[Between]) -> None:
        """An error of the transcript itself, once it has begun the run, ends it there too."""

        class Unreadable(kind):  # type: ignore[misc, valid-type]  # a class that is given
            broken = False

            @property
            def waiting(self) -> tuple[WaitingCall, ...]:
                if self.broken:
                    raise OSError
                waits: tuple[WaitingCall, ...] = super().waiting
                return waits

        transcript = Unreadable()
        transcript.happens.append(lambda: setattr(transcript, "broken", True))
        with pytest.raises(StoreFailure):
            agent_on(transcript).run("hi")
        transcript.broken = False
        assert [record.status for record in transcript.records] == ["failed"]
        assert_sendable(transcript)


def taken_over(number: int, **where: Any) -> LineInterrupt:
    """Interrupts, there, an agent that takes over from a dropped stream; then everybody runs, in turn."""
    transcript = MemoryTranscript()
    first = agent_on(transcript, say("One two."), say("1"), say("2"))
    drop_half_read(first)
    second = agent_on(transcript, say("Mine."), say("3"), say("4"))
    line = LineInterrupt(number, **where)
    line(lambda: second.run("take over"))
    for agent in (agent_on(transcript), second, first, agent_on(transcript)):
        assert agent.run("more").ok
    assert check_messages(transcript.messages) == []
    return line


def closed(number: int, again: int, **where: Any) -> LineInterrupt:
    """Interrupts an agent, there, while it closes its dropped run, and once more so far on; then others run, while
    somebody still looks at the interrupts, as a debugger does."""
    transcript = MemoryTranscript()
    first = agent_on(transcript, say("One two."), say("1"))
    drop_half_read(first)
    line, second = LineInterrupt(number, **where), LineInterrupt(again, **where)
    looked_at: list[KeyboardInterrupt] = []

    def close_it() -> None:
        try:
            first.wait_idle(PATIENCE_S)
        except KeyboardInterrupt as interrupt:
            looked_at.append(interrupt)
            raise

    line(close_it)
    second(close_it)
    for agent in (agent_on(transcript), first, agent_on(transcript)):
        assert agent.run("more").ok
    assert check_messages(transcript.messages) == []
    return line


only_3_11 = pytest.mark.skipif(sys.version_info >= (3, 12), reason="traces bytecodes of frames entered before alone")


@only_3_11
def test_ctrl_c_at_any_bytecode_of_taking_over() -> None:
    """Whoever took over and was cut off has left that behind as well: the next one runs, and all the others."""
    number = 1
    while taken_over(number, opcodes_of="_hold.py").where:
        number += 1
    assert number > 100


def test_ctrl_c_at_any_line_of_taking_over() -> None:
    """The same before lines of the kernel."""
    number = 1
    while taken_over(number).where:
        number += 7
    assert number > 200


@only_3_11
def test_ctrl_c_twice_while_a_dropped_run_is_closed() -> None:
    """A closing that was cut off, and the one after it, leave the transcript to whoever comes next."""
    number = 1
    while closed(number, number % 23 + 1, opcodes_of="_hold.py").where:
        number += 1
    assert number > 50


def test_ctrl_c_in_a_stream_that_is_kept() -> None:
    """A run that was cut off holds up nobody, though somebody still has its stream."""
    number = 1
    while True:
        transcript = MemoryTranscript()
        stream = agent_on(transcript, say("One two.")).stream("go", check=False)
        line = LineInterrupt(number, lines_of="_closing.py")
        line(partial(list, stream))
        assert_sendable(transcript)
        if not line.where:
            break
        number += 1
    assert number > 20


@only_3_11
def test_ctrl_c_while_a_plain_id_takes_it() -> None:
    """Who drives runs without an agent leaves nothing behind either, unless he has the transcript by then."""
    number, held = 1, 0
    while True:
        transcript = MemoryTranscript()
        drop_half_read(agent_on(transcript, say("One two.")))
        line = LineInterrupt(number, opcodes_of="_hold.py")
        line(partial(transcript.begin_run, "r-1"))
        if not line.where:
            break
        try:
            agent_on(transcript).run("next")
        except Busy:
            held += 1
            assert line.where.endswith(" take")
        number += 1
    assert held < 4 < number


def test_while_a_dropped_run_is_closed_nobody_takes_it_over() -> None:
    """The closing of a run that was left behind writes; another agent is `Busy` meanwhile, and runs afterwards."""
    transcript = MemoryTranscript()
    told: list[str] = []

    def observe(event: Event) -> None:
        if isinstance(event, ToolResultCommitted):
            with pytest.raises(Busy):
                agent_on(transcript).run("me too")
            told.append(event.kind)

    first = agent_on(transcript, call("work"), tools=[work], extensions=[Hooks(observe=observe)])
    drop_in_a_call(first)
    assert first.wait_idle(PATIENCE_S)
    assert told == ["tool_result_committed"]
    assert_sendable(transcript)


@only_3_11
def test_others_come_and_go_while_a_dropped_run_is_reclaimed() -> None:
    """Whatever the moment in which one run comes and goes, and a next one asks for a tool, the closing of the dropped
    run leaves the calls of that one alone."""
    number, came = 1, 0
    while True:
        transcript = MemoryTranscript()
        first = agent_on(transcript, say("One two."))
        drop_half_read(first)
        third = agent_on(transcript, call("work"), say("Third."), tools=[work]).stream("work", check=False)

        def others(transcript: MemoryTranscript = transcript, third: RunStream[None] = third) -> None:
            with suppress(Busy):
                agent_on(transcript).run("me")
                while next(third).kind != "tool_execution_start":
                    pass

        line = AtLine(number, others, opcodes_of="_hold.py")
        line(partial(first.wait_idle, PATIENCE_S))
        if not line.where:
            break
        with suppress(Busy):
            assert third.result.text == "Third."
            came += 1
        assert check_messages(transcript.messages) == []
        number += 1
    assert came > 5


class Moving(MemoryTranscript):
    """A transcript that another agent compacts, and goes on with, when it is looked at for the given time."""

    def __init__(self, moment: int) -> None:
        super().__init__()
        self.left = moment
        self.happens: Callable[[], object] | None = None

    @property
    def messages(self) -> MessageView:
        if self.happens is not None:
            self.left -= 1
            if self.left == 0:
                happens, self.happens = self.happens, None
                happens()
        return super().messages


def compact(view: TurnView) -> None:
    """Puts a summary in the place of all there is."""
    view.transcript.replace(Compaction(UserMessage("Summary."), view.messages[-1].id))  # type: ignore[attr-defined]


def note_texts(there: list[list[str]], transcript: MemoryTranscript) -> None:
    """Notes what is in the transcript."""
    there.append([message.text for message in transcript.messages])


def test_what_is_read_is_of_one_moment() -> None:
    """Whichever look another run comes behind, the request shows what the transcript holds then."""
    for moment in range(1, 8):
        transcript = Moving(moment)
        there: list[list[str]] = []
        look = Do(partial(note_texts, there, transcript))
        model = ScriptedModel([[look, *say("Late.")], [look, *say("Later.")]])
        agent = Agent(model, transcript=transcript)
        agent_on(transcript, say("One."), say("Two.")).run("first")

        def go_on(transcript: Moving = transcript) -> None:
            with suppress(Busy):
                agent_on(transcript, say("Two."), extensions=[Hooks(before_run=compact)]).run("second")
                agent_on(transcript, say("Three.")).run("third")

        transcript.happens = go_on
        for text in ("late", "later"):
            agent.run(text)
            assert [message.text for message in model.requests[-1].messages] == there[-1]
            assert there[-1][-1] == text


def work() -> str:
    """Works."""
    return "done"


def drop_in_a_call(agent: Agent) -> None:
    """Begins a stream, reads it to where a tool has been asked for, and drops it."""
    streams = [agent.stream("go")]
    while not isinstance(getattr(next(streams[0]), "message", None), AssistantMessage):
        pass
    with pytest.warns(ResourceWarning, match="dropped"):
        streams.clear()


def test_who_comes_back_late_writes_nothing() -> None:
    """A dropped run whose calls another has closed, and that comes back in a third one's call, leaves that alone."""
    transcript = MemoryTranscript()
    first = agent_on(transcript, call("work"), tools=[work])
    drop_in_a_call(first)
    assert agent_on(transcript, say("Second.")).run("me").ok

    def meanwhile() -> str:
        """Has the first agent look after itself."""
        assert first.wait_idle(PATIENCE_S)
        return "done"

    third = agent_on(transcript, call("meanwhile"), say("Third."), tools=[meanwhile])
    assert third.run("and me").text == "Third."
    assert [message.result.status for message in transcript.messages if isinstance(message, ToolMessage)] == [
        ToolResultStatus.CANCELLED, ToolResultStatus.OK,
    ]  # fmt: skip
    assert_sendable(transcript)


def test_who_was_cut_off_behind_its_record_writes_nothing() -> None:
    """The same in a transcript that knows no holds: a run that is recorded closes nothing any more."""
    number = 0
    while True:
        number += 1
        transcript = Foreign()
        first = agent_on(transcript, say("One."))
        line = LineInterrupt(number, lines_of="_closing.py")
        line(partial(first.run, "go"))
        if not line.where:
            break
        if not transcript.records or line.where.endswith(" store_record"):
            continue  # it has the transcript still, or does not know that it is recorded
        look_after = FakeTool("look", Do(partial(first.wait_idle, PATIENCE_S)))
        assert agent_on(transcript, call("look"), say("Done."), tools=[look_after]).run("me").text == "Done."
        assert [message.result.status for message in transcript.messages if isinstance(message, ToolMessage)] == ["ok"]
    assert number > 20


def test_a_refused_run_is_not_recorded() -> None:
    """A run that could not begin has not been: the next entry of its agent finds nothing to close."""
    transcript = Between()
    agent = agent_on(transcript)
    with pytest.raises(InvalidArgument):
        agent.run()
    assert agent.wait_idle(0)
    assert agent.run("hi").ok
    assert [record.status for record in transcript.records] == ["completed"]


class TestRunHold:
    """What `begin_run` is called with, for the author of a transcript."""

    def test_it_is_the_id(self) -> None:
        """It is a str, equal to the id; made for a plain one, as of now or of a time that is told."""
        hold = RunHold.of("r-1", since=5.0)
        assert (hold, hold.since, RunHold.of(hold) is hold) == ("r-1", 5.0, True)
        assert RunHold.of("r-1").since > 1e9
        with pytest.raises(InvalidArgument, match=r"^Mine\.begin_run: run_id must be a str, not int"):
            RunHold.of(5, "Mine.begin_run")
        with pytest.raises(InvalidArgument, match=r"^begin_run: run_id must be"):
            RunHold.of(None)

    def test_who_was_refused_may_ask_again(self) -> None:
        """A transcript may wait for its turn with the same hold: from then on others are `Busy`."""

        class Waiting(MemoryTranscript):
            looks = 0

            def begin_run(self, run_id: str) -> None:
                while True:
                    try:
                        return super().begin_run(run_id)
                    except Busy:
                        self.looks += 1
                        if self.looks > 1:
                            raise
                        super().end_run(RunRecord("r-1", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))

        transcript = Waiting()
        transcript.begin_run("r-1")

        def meanwhile() -> str:
            """Asks for the transcript."""
            with pytest.raises(Busy):
                agent_on(transcript).run("me too")
            return "refused"

        agent = agent_on(transcript, call("meanwhile"), say("Done."), tools=[meanwhile])
        assert (agent.run("go").text, transcript.looks) == ("Done.", 2)

    def test_one_hold_in_two_places(self) -> None:
        """A transcript that mirrors itself into another one gives its hold on; both are free when the run has ended,
        and taken over together when it was left behind."""

        transcript = Mirrored(MemoryTranscript())
        assert agent_on(transcript).run("one").ok
        assert agent_on(transcript.mirror).run("two").ok
        drop_half_read(agent := agent_on(transcript, say("One two.")))
        transcript.mirror.begin_run("import-1")
        transcript.mirror.end_run(RunRecord("import-1", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))
        assert agent_on(transcript).run("and on").ok
        assert agent.wait_idle(PATIENCE_S)
        first = agent_on(transcript, say("One two."))
        drop_half_read(first)
        assert agent_on(transcript.mirror).run("three").ok
        assert agent_on(transcript).run("four").ok
        assert first.wait_idle(PATIENCE_S)
        assert_sendable(transcript)

    @pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda hold: pickle.loads(pickle.dumps(hold))])
    def test_a_copy_is_the_id_alone(self, how: Callable[[RunHold], str]) -> None:
        """Elsewhere it holds nothing."""
        made = how(RunHold.of("r-1"))
        assert (type(made), made) == (str, "r-1")

    def test_a_transcript_of_ones_own(self) -> None:
        """Two lines let one run at a time write, and none that was left behind hold up another."""

        class Mine(MemoryTranscript):
            def __init__(self) -> None:
                super().__init__()
                self.holds: dict[str, RunHold] = {}

            def begin_run(self, run_id: str) -> None:
                RunHold.of(run_id).take(self.holds, "Mine.begin_run", "my transcript")

            def end_run(self, record: RunRecord) -> None:
                RunHold.end(self.holds, record.run_id)

        transcript = Mine()
        drop_half_read(agent_on(transcript, say("One two.")))
        assert_sendable(transcript)
        transcript.begin_run("r-1")
        with pytest.raises(Busy, match=r"^my transcript is busy with run r-1: one run at a time") as busy:
            agent_on(transcript).run("me too")
        assert (busy.value.run_id, busy.value.operation) == ("r-1", "Mine.begin_run")
        transcript.end_run(RunRecord("r-2", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))
        with pytest.raises(Busy):
            transcript.begin_run("r-3")
        copied = copy.deepcopy(transcript)
        copied.end_run(RunRecord("r-1", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))
        assert agent_on(copied).run("me too").ok
        transcript.end_run(RunRecord("r-1", "", "completed", "", 0.0, 0.0, 1, 0, Usage()))
        assert agent_on(transcript).run("me too").status is RunStatus.COMPLETED
