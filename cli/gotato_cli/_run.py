"""`gotato run`."""

from __future__ import annotations

import os
import select
from importlib import import_module

from ._arguments import Arguments
from ._asking import agent_of, carry_out
from ._interrupts import EXIT_INTERRUPTED, Interrupts
from ._output import Output
from ._problems import UsageError

_POLL_S = 0.1


def run_command(arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    """Runs the agent once and returns the exit code. Raises `UsageError`, and `CannotWrite` from the output."""
    if arguments.session is None and (arguments.store is not None or arguments.ask):
        raise UsageError(f"{'--store' if arguments.store is not None else '--ask'} goes with --session ID")
    agent = agent_of(arguments) if arguments.session is None else None
    prompt = _read_stdin(interrupts) if arguments.prompt == "-" else arguments.prompt
    if prompt is None:
        return EXIT_INTERRUPTED
    if not prompt.strip():
        raise UsageError("the prompt is empty; give one, or - and one on stdin")
    if agent is not None:
        return carry_out(agent, arguments, interrupts, output, message=prompt)
    resuming = import_module("gotato_cli._resume")  # only now: what sessions need is not loaded for others
    code: int = resuming.run_in_session(arguments, interrupts, output, prompt)
    return code


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
