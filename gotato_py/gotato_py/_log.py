"""The `gotato_py` logger, imported when the first line is written: most programs never write one, and it costs 6 ms."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _logger() -> Any:  # Any: the logging module is not known before it is imported
    return import_module("logging").getLogger("gotato_py")


def debug(text: str, *args: object, exc_info: bool | BaseException = False) -> None:
    """A line for whoever looks for a fault."""
    _logger().debug(text, *args, exc_info=exc_info)


def warn(text: str, *args: object) -> None:
    """A line for whoever runs the program."""
    _logger().warning(text, *args)
