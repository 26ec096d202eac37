"""`gotato session resume`, and `gotato run` in a session."""

from __future__ import annotations

from gotato_py import Approve, Decision, Deny
from gotato_session import Session

from ._arguments import Arguments
from ._asking import agent_of, carry_out
from ._interrupts import Interrupts
from ._output import Output
from ._problems import UsageError
from ._stores import store_at
from ._tools import DEMO_TOOLS


def run_in_session(arguments: Arguments, interrupts: Interrupts, output: Output, prompt: str) -> int:
    """Asks the prompt in the session, which is made if there is none yet, and returns the exit code."""
    agent_of(arguments)  # a mistake in the model's name makes no session
    with store_at(arguments.store, create=True) as store, store.open(arguments.session or "", create=True) as session:
        _tell_recovered(session, output)
        return carry_out(agent_of(arguments, session), arguments, interrupts, output, message=prompt)


def resume_command(arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    """Goes on with the session and returns the exit code. Raises `UsageError` before anything was run."""
    if arguments.message is not None and (arguments.approve or arguments.deny):
        raise UsageError("--message drops what waits; give it without --approve and --deny")
    if arguments.message is not None and not arguments.message.strip():
        raise UsageError("--message is empty")
    agent_of(arguments)
    with store_at(arguments.store) as store, store.open(arguments.id) as session:
        _tell_recovered(session, output)
        answers = _answers(arguments, session)
        agent = agent_of(arguments, session)
        return carry_out(agent, arguments, interrupts, output, message=arguments.message, answers=answers)


def _tell_recovered(session: Session, output: Output) -> None:
    for line in session.recovered:
        output.note(f"! {line}")


def _answers(arguments: Arguments, session: Session) -> dict[str, Decision] | None:
    """The answers that were given, which may be none of several; None where nothing waits or a new message comes."""
    given: dict[str, Decision] = {key: Deny(reason) for key, reason in arguments.deny}
    for key in arguments.approve:
        if key in given:
            raise UsageError(f"{key} is both approved and denied")
        given[key] = Approve()
    names = {call.key: call.name for call in session.waiting}
    mine = {each.spec.name for each in DEMO_TOOLS}
    for key, decision in given.items():
        if key not in names:
            waits = f"those that do: {', '.join(names)}" if names else "nothing waits"
            raise UsageError(f"no call {key} of the session {session.id} waits for an answer; {waits}")
        if isinstance(decision, Approve) and names[key] not in mine:
            text = f"{key} calls {names[key]}, a tool that this command does not have"
            raise UsageError(f"{text}: approve it in the program that has it")
    return given if names and arguments.message is None else None
