"""The command itself, once Ctrl-C is taken care of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO

from ._arguments import parse
from ._interrupts import Interrupts
from ._output import CannotWrite, Output
from ._run import EXIT_USAGE, UsageError, run_command

EXIT_FAILED = 1
EXIT_BROKEN_PIPE = 141
"""What a shell shows for a program that SIGPIPE ended: our reader is gone, and the run was cancelled."""


def run(argv: Sequence[str], interrupts: Interrupts) -> int:
    """Carries out the command and returns the exit code; raises nothing."""
    output = Output(interrupts)
    try:
        return _dispatch(argv, interrupts, output)
    except UsageError as error:
        return _complain(output, str(error), EXIT_USAGE)
    except CannotWrite as error:
        return EXIT_BROKEN_PIPE if error.broken_pipe else _complain(output, f"cannot write: {error}", EXIT_FAILED)


def _dispatch(argv: Sequence[str], interrupts: Interrupts, output: Output) -> int:
    printed = StringIO()  # argparse would pass over in silence that --help could not be written
    try:
        with redirect_stdout(printed):
            arguments = parse(argv)
    except SystemExit as end:
        output.text(printed.getvalue())
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    if arguments.command == "run":
        return run_command(arguments, interrupts, output)
    code: int = import_module("gotato_cli._doctor").doctor_command(output, as_json=arguments.json)
    return code


def _complain(output: Output, problem: str, code: int) -> int:
    try:
        output.problem(problem)
    except CannotWrite:  # nobody is left to be told
        pass
    return code
