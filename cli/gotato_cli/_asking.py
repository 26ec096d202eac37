"""One run of an agent, shown as it goes: what `gotato run` and `gotato session resume` have in common."""

from __future__ import annotations

from collections.abc import Mapping

from gotato_py import Agent, Ask, Decision, Hooks, InvalidArgument, InvalidState, Scope, ToolContext, Transcript

from ._arguments import Arguments
from ._interrupts import Interrupts
from ._models import model_of
from ._output import Output
from ._problems import EXIT_CODES, UsageError, explain
from ._reports import AsEvents, AsJson, AsText, Report
from ._tools import DEMO_TOOLS


def _question(use: ToolContext) -> Ask:
    return Ask(f"May {use.name} run?")


ASK_FIRST = Hooks(before_tool=_question, name="ask_first")
"""What `--ask` does: a person decides about each call."""


def agent_of(arguments: Arguments, transcript: Transcript | None = None) -> Agent:
    """The agent that was asked for. Raises `UsageError` for a model that there is not."""
    model = model_of(arguments.model, arguments.base_url)
    extensions = (ASK_FIRST,) if arguments.ask else ()
    return Agent(
        model,
        instructions=arguments.instructions,
        tools=DEMO_TOOLS,
        transcript=transcript,
        extensions=extensions,
    )


def carry_out(
    agent: Agent,
    arguments: Arguments,
    interrupts: Interrupts,
    output: Output,
    *,
    message: str | None = None,
    answers: Mapping[str, Decision] | None = None,
) -> int:
    """Runs the agent once and returns the exit code. Raises `UsageError` if it cannot begin, and `CannotWrite`."""
    scope = Scope()
    interrupts.watch(scope)
    report = _report(agent, arguments, output)
    try:
        stream = agent.stream(message, answers=answers, timeout=arguments.timeout, scope=scope, check=False)
        with stream:
            for event in stream:
                report.show(event)
            result = stream.result
    except (InvalidArgument, InvalidState) as error:
        hint = "" if message is not None else ", with --message TEXT"
        raise UsageError(f"the run cannot begin: {error}{hint}") from None
    report.finish(result)
    for call in result.waiting:
        output.note(f"? {call.question} ({call.name}, {call.key})")
    explain(result, output)
    return EXIT_CODES[result.status]


def _report(agent: Agent, arguments: Arguments, output: Output) -> Report:
    if arguments.json:
        return AsJson(output)
    return AsEvents(output) if arguments.events else AsText(output, agent.transcript.messages)
