"""The options of commands that ask a model, and what all commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

AddParser = Callable[..., argparse.ArgumentParser]
"""`add_parser` of what `add_subparsers` gives, whose type has no public name."""

EXIT_CODES = """\
exit codes:
  0 completed   1 failed   2 usage   3 limited   4 deadline   5 waiting
  130 interrupted by Ctrl-C   141 stdout was closed
"""


def command(add_parser: AddParser, name: str, short: str, description: str) -> argparse.ArgumentParser:
    """A command of that name; `short` is for the list, `description` for its own help."""
    return add_parser(
        name,
        help=short,
        description=description,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model is asked, and how."""
    parser.add_argument(
        "--model",
        default="demo",
        metavar="demo|echo|PROVIDER:NAME",
        help="the model to ask, such as openai:gpt-5, or a configured name",
    )
    parser.add_argument("--base-url", metavar="URL", help="where the provider is, if not at its usual place")
    parser.add_argument("--instructions", default="", metavar="S", help="what the model is told before the prompt")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds the run may take")


def add_form(parser: argparse.ArgumentParser) -> None:
    """How a run is shown."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the result as one JSON object")
    form.add_argument("--events", action="store_true", help="print a JSON line for each event, the result last")


def seconds(text: str) -> float:
    """A number of seconds."""
    found = float(text)  # argparse tells of a ValueError
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds of at least 0")
    return found


def count(text: str) -> int:
    """A number of things."""
    found = int(text)  # argparse tells of a ValueError
    if found < 0:
        raise argparse.ArgumentTypeError(f"{text} is less than 0")
    return found
