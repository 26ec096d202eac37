"""The command line, parsed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from gotato_py import __version__

_EXIT_CODES = """\
exit codes:
  0 completed   1 failed   2 usage   3 limited   4 deadline   5 waiting
  130 interrupted by Ctrl-C   141 stdout was closed
"""


class Arguments(argparse.Namespace):
    """What was asked for. `command` is "run" or "doctor"."""

    command: str
    model: str
    base_url: str | None
    instructions: str
    timeout: float | None
    json: bool
    events: bool
    prompt: str


def parse(argv: Sequence[str]) -> Arguments:
    """Parses the arguments. Ends the program by SystemExit after --help, --version and a mistake (code 2)."""
    parser = argparse.ArgumentParser(
        prog="gotato",
        description="Run an agent from the shell.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gotato {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="answer a prompt",
        description=_RUN,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_run(run)
    doctor = commands.add_parser("doctor", help="check the installation", description=_DOCTOR, allow_abbrev=False)
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(argv, namespace=Arguments())


_RUN = """\
Answers a prompt, with two tools that work offline: weather(city), from a fixed
table, and calculate(expression). The default model, "demo", follows simple
rules and needs no key and no network; other models get the same tools, so that
calling them can be tried. Text goes to stdout as it comes, a line for each call
and each result to stderr.
"""
_DOCTOR = """\
Shows the versions in use, the configured models and which keys are set, by
name, and tries a run offline. Exits 0 if all is well.
"""


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--model",
        default="demo",
        metavar="demo|echo|PROVIDER:NAME",
        help="the model to ask, such as openai:gpt-5, or a configured name",
    )
    run.add_argument("--base-url", metavar="URL", help="where the provider is, if not at its usual place")
    run.add_argument("--instructions", default="", metavar="S", help="what the model is told before the prompt")
    run.add_argument("--timeout", type=seconds, metavar="S", help="seconds the run may take")
    form = run.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as one JSON object")
    form.add_argument("--events", action="store_true", help="print a JSON line for each event, the result last")
    run.add_argument("prompt", help="what to ask; - reads it from stdin")


def seconds(text: str) -> float:
    seconds = float(text)  # argparse tells of a ValueError
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds of at least 0")
    return seconds
