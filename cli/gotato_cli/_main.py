"""The command itself, once Ctrl-C is taken care of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO

from gotato_py import GotatoError, InvalidArgument

from ._arguments import Arguments, parse
from ._interrupts import Interrupts
from ._output import CannotWrite, Output
from ._problems import EXIT_FAILED, EXIT_USAGE, UsageError, in_words
from ._run import run_command

EXIT_BROKEN_PIPE = 141
"""What a shell shows for a program that SIGPIPE ended: our reader is gone, and the run was cancelled."""


def run(argv: Sequence[str], interrupts: Interrupts) -> int:
    """Carries out the command and returns the exit code; raises nothing."""
    output = Output(interrupts)
    try:
        return _dispatch(argv, interrupts, output)
    except (UsageError, InvalidArgument) as error:
        return _complain(output, str(error), EXIT_USAGE)
    except GotatoError as error:
        return _complain(output, in_words(error), EXIT_FAILED)
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
    return _carry_out(arguments, interrupts, output)


def _carry_out(arguments: Arguments, interrupts: Interrupts, output: Output) -> int:
    """Each command loads what it needs, and no more."""
    code: int
    match arguments.command:
        case "run":
            code = run_command(arguments, interrupts, output)
        case "session":
            code = import_module("gotato_cli._session").session_command(arguments, interrupts, output)
        case "context":
            code = import_module("gotato_cli._context").context_command(arguments, interrupts, output)
        case _:
            code = import_module("gotato_cli._doctor").doctor_command(output, as_json=arguments.json)
    return code


def _complain(output: Output, problem: str, code: int) -> int:
    try:
        output.problem(problem)
    except CannotWrite:  # nobody is left to be told
        pass
    return code
