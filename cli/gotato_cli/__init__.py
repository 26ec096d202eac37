"""gotato_cli: the `gotato` command. Importing it loads next to nothing, so that Ctrl-C is in good hands at once."""

import sys
from collections.abc import Sequence
from importlib import import_module

from ._interrupts import Interrupts

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command in this process and returns its exit code. Takes SIGINT over, for good.

    The handler comes first, then everything that takes time to import.
    """
    interrupts = Interrupts()
    interrupts.install()
    program = import_module("gotato_cli._main")
    code: int = program.run(sys.argv[1:] if argv is None else argv, interrupts)
    return interrupts.exit_code(code)
