"""`gotato run --session` and `gotato session resume`, on a folder and on a database."""

from __future__ import annotations

import json

import pytest

from gotato_cli._problems import in_words
from gotato_py import AssistantMessage, InvalidState, SessionBusy, ToolCall, UserMessage, WaitingCall

from . import places
from .places import Desk, Done, each_store

desk = each_store(places.desk)

PROMPT = "What is the weather in Oslo, and what is 17 * 23?"
ANSWER = "Oslo: 8 °C, sunny. 17 * 23 = 391.\n"


def ask(desk: Desk, *argv: str) -> Done:
    """A run in which a person decides about each of two calls."""
    return desk("run", "--session", "s-1", "--ask", *argv, PROMPT)


def keys(desk: Desk) -> list[str]:
    """The keys of the calls that wait."""
    with desk.store() as store, store.open("s-1", read_only=True) as session:
        return [call.key for call in session.waiting]


# ---- run --session


def test_a_run_makes_its_session_and_goes_on_with_it(desk: Desk) -> None:
    """The first run makes it, the next one goes on; the answer is printed as without a session."""
    done = desk("run", "--session", "s-1", PROMPT)
    assert (done.code, done.out) == (0, ANSWER)
    done = desk("run", "--session", "s-1", "--json", "What is 2 + 2?")
    assert (done.code, done.json["text"]) == (0, "2 + 2 = 4.")
    told = desk("session", "show", "s-1", "--json").json
    assert [each["parts"][0]["text"] for each in told["messages"] if each["role"] == "user"] == [
        PROMPT,
        "What is 2 + 2?",
    ]
    assert len(told["runs"]) == 2


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run", "--store", "x", "hi"], "--store goes with --session"),
        (["run", "--ask", "hi"], "--ask goes with --session"),
        (["run", "--session", "s-1", "hi"], "say where the sessions are"),
    ],
)
def test_a_session_needs_its_place(desk: Desk, argv: list[str], words: str) -> None:
    """What belongs together is asked for together."""
    done = desk(*argv, place=False)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.parametrize("argv", [["--model", "gpt", "hi"], [""], ["--session", "../x", "hi"]])
def test_a_mistake_makes_no_session(desk: Desk, argv: list[str]) -> None:
    """A model that there is not, an empty prompt and an id that cannot be are told before anything is made."""
    done = desk("run", "--session", "s-1", *argv)
    assert (done.code, done.out) == (2, "")
    assert not desk.path.exists()


# ---- waiting


def test_a_run_that_waits_shows_its_questions(desk: Desk) -> None:
    """With --ask the run ends with code 5, and says what waits and by which key."""
    done = ask(desk)
    assert (done.code, done.out) == (5, "")
    assert done.err.splitlines() == [
        f"? May weather run? (weather, {keys(desk)[0]})",
        f"? May calculate run? (calculate, {keys(desk)[1]})",
    ]


def test_what_waits_is_in_the_json(desk: Desk) -> None:
    """The object of --json has the calls that wait; without any, that member is not there."""
    done = ask(desk, "--json")
    assert (done.code, done.json["status"]) == (5, "waiting")
    assert done.json["waiting"][1] == {
        "key": keys(desk)[1],
        "name": "calculate",
        "arguments": {"expression": "17 * 23"},
        "question": "May calculate run?",
    }
    approved = [word for key in keys(desk) for word in ("--approve", key)]
    told = desk("session", "resume", "s-1", *approved, "--json").json
    assert list(told) == ["run_id", "status", "text", "usage", "metrics", "error"]
    assert told["text"] + "\n" == ANSWER


def test_answers_may_come_one_after_another(desk: Desk) -> None:
    """Each is kept, the run waits for the rest, and then goes on; nothing that was denied is run."""
    ask(desk)
    first, second = keys(desk)
    done = desk("session", "resume", "s-1")
    assert (done.code, done.out, done.err.count("? ")) == (5, "", 4)
    done = desk("session", "resume", "s-1", "--approve", first)
    assert (done.code, done.out) == (5, "")
    assert done.err == f"? May calculate run? (calculate, {second})\n"
    done = desk("session", "resume", "s-1", "--deny", f"{second}=too = dear")
    assert done.code == 0
    assert done.out == 'Oslo: 8 °C, sunny. calculate(expression="17 * 23") did not work: too = dear.\n'
    assert done.err.splitlines() == [
        '→ weather(city="Oslo")',
        "← ok: Oslo: 8 °C, sunny",
        '→ calculate(expression="17 * 23")',
        "← blocked: too = dear",
    ]


def test_events_can_be_watched(desk: Desk) -> None:
    """--events prints a line for each event, the result last."""
    ask(desk)
    answers = [word for key in keys(desk) for word in ("--deny", key)]
    lines = desk("session", "resume", "s-1", *answers, "--events").lines
    assert (lines[0]["kind"], lines[-1]["kind"], lines[-1]["status"]) == ("agent_start", "run_result", "completed")


def test_calls_that_come_later_are_asked_for_too(desk: Desk) -> None:
    """--ask holds for a resumed run."""
    desk("run", "--session", "s-1", "hi")
    done = desk("session", "resume", "s-1", "--ask", "--message", "What is 2 + 2?")
    assert done.code == 5
    assert "? May calculate run?" in done.err


def test_a_message_drops_what_waits(desk: Desk) -> None:
    """The calls that waited are closed, and the message is answered."""
    ask(desk)
    done = desk("session", "resume", "s-1", "--message", "What is 2 + 2?")
    assert (done.code, done.out) == (0, "2 + 2 = 4.\n")
    assert keys(desk) == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--approve", "x"], "no call x of the session s-1 waits for an answer; those that do: "),
        (["--approve", "KEY", "--deny", "KEY"], "is both approved and denied"),
        (["--approve", "KEY", "--message", "hi"], "--message drops what waits"),
        (["--message", " "], "--message is empty"),
        (["--model", "gpt"], "no model 'gpt'"),
        (["--json", "--events"], "not allowed with"),
    ],
)
def test_a_mistake_runs_nothing(desk: Desk, argv: list[str], words: str) -> None:
    """What cannot be meant is code 2, and the session stays as it was."""
    ask(desk)
    before = desk("session", "show", "s-1", "--json").json
    done = desk("session", "resume", "s-1", *[each.replace("KEY", keys(desk)[0]) for each in argv])
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert desk("session", "show", "s-1", "--json").json == before


def test_another_answer_to_a_decided_call_is_refused(desk: Desk) -> None:
    """The first answer counts; the same one again changes nothing."""
    ask(desk)
    first = keys(desk)[0]
    assert desk("session", "resume", "s-1", "--approve", first).code == 5
    assert desk("session", "resume", "s-1", "--approve", first).code == 5
    done = desk("session", "resume", "s-1", "--deny", first)
    assert (done.code, done.out) == (2, "")
    assert "the first answer counts" in done.err


def test_a_tool_of_another_program_cannot_be_approved_here(desk: Desk) -> None:
    """The command does not have it, so it would be closed unrun; denying it is possible."""
    with desk.session() as session:
        session.append(UserMessage("pay"))
        session.append(AssistantMessage("", [ToolCall("c", "pay")], id="a1"))
        session.mark_waiting([WaitingCall("a1:0", "c", "pay", {}, "Pay?")])
    done = desk("session", "resume", "s-1", "--approve", "a1:0")
    assert (done.code, done.out) == (2, "")
    assert "a1:0 calls pay, a tool that this command does not have" in done.err
    assert keys(desk) == ["a1:0"]
    assert desk("session", "resume", "s-1", "--deny", "a1:0").code == 0


def test_nothing_waits(desk: Desk) -> None:
    """An answer that nobody waits for is a mistake, and so is going on with what is finished or empty."""
    desk("run", "--session", "s-1", "hi")
    done = desk("session", "resume", "s-1", "--approve", "x")
    assert (done.code, "nothing waits" in done.err) == (2, True)
    done = desk("session", "resume", "s-1")
    assert (done.code, done.out) == (2, "")
    assert "the last answer is finished; pass a message, with --message TEXT" in done.err
    with desk.session("s-2"):
        pass
    done = desk("session", "resume", "s-2")
    assert (done.code, "with --message TEXT" in done.err) == (2, True)


# ---- who has it, and what was broken


def test_a_session_that_is_open_is_told(desk: Desk) -> None:
    """Its owner is named in one line, with code 1, at once."""
    with desk.store() as store, store.create("s-1", owner="the other one"):
        commands = [["session", "resume", "s-1", "--message", "hi"], ["run", "--session", "s-1", "hi"]]
        for argv in [*commands, ["context", "compact", "s-1", "--keep-tokens", "1"]]:
            done = desk(*argv)
            assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
            assert "the other one" in done.err
            assert done.err.endswith("; try again once it is done\n")
            assert "=True" not in done.err


def test_what_was_mended_is_told(desk: Desk) -> None:
    """A torn tail is taken away when the session is opened for writing, and told on stderr."""
    with desk.session() as session:
        session.append(UserMessage("What is 2 + 2?"))
    if not desk.path.is_dir():
        return  # a database has no torn tail
    with (desk.path / "s-1.jsonl").open("ab") as file:
        file.write(b'{"seq": 2, "v')
    done = desk("session", "resume", "s-1")
    assert (done.code, done.out) == (0, "2 + 2 = 4.\n")
    assert done.err.startswith("! 13 bytes of an unfinished commit at the end were moved to ")


def test_errors_of_programs_become_words_for_people() -> None:
    """What only a caller of `open` can do is left out."""
    busy = SessionBusy("session 's' is open for 'me'; open it with read_only=True, or take it over with steal=True")
    assert in_words(busy) == "session 's' is open for 'me'; try again once it is done"
    assert in_words(InvalidState("there is one; open another")) == "there is one; open another"


def test_a_deadline_and_an_interrupt_have_their_codes(desk: Desk) -> None:
    """A resumed run ends as any other: no time left is 4, Ctrl-C is told and leaves the session whole."""
    ask(desk)
    answers = [word for key in keys(desk) for word in ("--approve", key)]
    assert desk("session", "resume", "s-1", "--timeout", "0", "--message", "hi").code == 4
    desk.interrupts.note()
    done = desk("session", "resume", "s-1", "--message", "hi", "--json")
    assert (done.code, json.loads(done.out)["status"], done.err) == (130, "cancelled", "gotato: interrupted\n")
    assert desk("session", "resume", "s-1", *answers).code == 2
    assert desk("session", "check", "s-1").code == 0
