"""How a command ends: its exit codes, and what people are told of what went wrong."""

from __future__ import annotations

import re
from typing import Any

from gotato_py import ErrorCode, GotatoError, RunResult, RunStatus

from ._interrupts import EXIT_INTERRUPTED
from ._output import Output

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_WAITING = 5
EXIT_CODES = {
    RunStatus.COMPLETED: 0,
    RunStatus.FAILED: EXIT_FAILED,
    RunStatus.LIMITED: 3,
    RunStatus.DEADLINE_EXCEEDED: 4,
    RunStatus.WAITING: EXIT_WAITING,
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
    ErrorCode.SESSION_BUSY: "try again once it is done",
    ErrorCode.SESSION_CORRUPT: "gotato session check --repair opens a copy of what can be read",
}
_FOR_PROGRAMS = re.compile(r"[.;] open\b[^.;]*=True.*")
"""What an error of a store says to those who can call `open`."""


class UsageError(Exception):
    """The command cannot be carried out as it was given; nothing was run."""


def in_words(error: GotatoError) -> str:
    """What went wrong outside of a run, and what to do, for people at a shell."""
    return _with_hint(plainly(error), error.code)


def plainly(error: GotatoError) -> str:
    """What went wrong, without what only programs can do about it."""
    return _FOR_PROGRAMS.sub("", str(error))


def _with_hint(text: str, code: ErrorCode) -> str:
    hint = _HINTS.get(code, "")
    return f"{text}; {hint}" if hint else text


def explain(result: RunResult[Any], output: Output) -> None:  # Any: no output is asked for
    """One line for people about a run that did not complete: what happened, and what to do."""
    if result.status in {RunStatus.COMPLETED, RunStatus.WAITING}:
        return
    if result.status is RunStatus.CANCELLED:
        output.problem("interrupted")
        return
    what = "reached a limit" if result.status is RunStatus.LIMITED else result.status.value.replace("_", " ")
    text = f"the run {what}: {result.error}"
    output.problem(text if result.error is None else _with_hint(text, result.error.code))
