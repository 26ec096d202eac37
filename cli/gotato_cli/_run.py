"""`gotato run`."""

from __future__ import annotations

import os
import select
from importlib import import_module

from gotato_py import Agent, ErrorCode, InvalidArgument, Model, NotFound, RunStatus, Scope
from gotato_testkit import DemoModel, EchoModel

from ._arguments import Arguments
from ._interrupts import EXIT_INTERRUPTED, Interrupts
from ._output import Output
from ._reports import AsEvents, AsJson, AsText, Report, Result
from ._tools import DEMO_TOOLS

EXIT_USAGE = 2
_EXIT_CODES = {
    RunStatus.COMPLETED: 0,
    RunStatus.FAILED: 1,
    RunStatus.LIMITED: 3,
    RunStatus.DEADLINE_EXCEEDED: 4,
    RunStatus.WAITING: 5,
    RunStatus.CANCELLED: EXIT_INTERRUPTED,
}
_HINTS = {
    ErrorCode.AUTHENTICATION_FAILED: "check the key in the provider's environment variable",
    ErrorCode.CONNECTION_FAILED: "check the network and --base-url, then try again",
    ErrorCode.RATE_LIMITED: "wait a while, then try again",
    ErrorCode.OVERLOADED: "wait a while, then try again",
    ErrorCode.QUOTA_EXHAUSTED: "check the account's balance and quota at the provider",
    ErrorCode.INVALID_REQUEST: "check the name of the model and --base-url",
    ErrorCode.CONTEXT_OVERFLOW: "shorten the prompt, or use a model with a larger context",
    ErrorCode.CONTENT_FILTERED: "rephrase the prompt",
    ErrorCode.EMPTY_RESPONSE: "try again, or rephrase the prompt",
    ErrorCode.DEADLINE_EXCEEDED: "allow more with --timeout",
    ErrorCode.LIMIT_EXCEEDED: "ask for less at once",
}
_POLL_S = 0.1


class UsageError(Exception):
    """The command cannot be carried out as it was given; nothing was run."""


def run_command(arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    """Runs the agent once and returns the exit code. Raises `UsageError`, and `CannotWrite` from the output."""
    model = _model(arguments)
    prompt = _read_stdin(interrupts) if arguments.prompt == "-" else arguments.prompt
    if prompt is None:
        return EXIT_INTERRUPTED
    if not prompt.strip():
        raise UsageError("the prompt is empty; give one, or - and one on stdin")
    scope = Scope()
    interrupts.watch(scope)
    agent = Agent(model, instructions=arguments.instructions, tools=DEMO_TOOLS)
    report = _report(arguments, output)
    with agent.stream(prompt, timeout=arguments.timeout, scope=scope, check=False) as stream:
        for event in stream:
            report.show(event)
        result = stream.result
    report.finish(result)
    _explain(result, output)
    return _EXIT_CODES[result.status]


def _report(arguments: Arguments, output: Output) -> Report:
    if arguments.json:
        return AsJson(output)
    return AsEvents(output) if arguments.events else AsText(output)


def _model(arguments: Arguments) -> Model:
    name, base_url = arguments.model, arguments.base_url
    if name in {"demo", "echo"}:
        if base_url is not None:
            raise UsageError(f"--base-url goes with PROVIDER:NAME; the model {name!r} needs no network")
        return DemoModel() if name == "demo" else EchoModel()
    try:
        gateway = import_module("gotato_gateway")  # only now: the other models need none of what it imports
    except ImportError as error:
        raise UsageError(f"{name} needs the package {error.name!r}; install it, or gotato-py as a whole") from None
    try:
        config = None if ":" in name else gateway.load_config()
        if config is not None and name not in config.models:
            raise UsageError(_unknown(name, config.path))
        model: Model = gateway.connect(name, base_url=base_url, config=config)
    except (InvalidArgument, NotFound) as error:
        raise UsageError(str(error)) from None
    return model


def _unknown(name: str, path: object) -> str:
    where = "there is no configuration file" if path is None else f"{path} has no [models.{name}]"
    return f"no model {name!r}; --model takes demo, echo, PROVIDER:NAME (openai:gpt-5) or a configured name; {where}"


def _read_stdin(interrupts: Interrupts) -> str | None:
    """All of stdin as text, or None if Ctrl-C came first. Waits in short rounds, since SIGINT raises nothing here."""
    pieces: list[bytes] = []
    try:
        while not interrupts.count:
            if select.select([0], [], [], _POLL_S)[0]:
                piece = os.read(0, 1 << 16)
                if not piece:
                    return b"".join(pieces).decode("utf-8").rstrip("\r\n")
                pieces.append(piece)
    except UnicodeDecodeError:
        raise UsageError("stdin is not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"cannot read the prompt from stdin: {error.strerror}") from None
    return None


def _explain(result: Result, output: Output) -> None:
    """One line for people about a run that did not complete: what happened, and what to do."""
    if result.status in {RunStatus.COMPLETED, RunStatus.WAITING}:
        return
    if result.status is RunStatus.CANCELLED:
        output.problem("interrupted")
        return
    what = "reached a limit" if result.status is RunStatus.LIMITED else result.status.value.replace("_", " ")
    hint = "" if result.error is None else _HINTS.get(result.error.code, "")
    output.problem(f"the run {what}: {result.error}{hint and f'; {hint}'}")
