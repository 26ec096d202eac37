"""Who is told of a registry's changes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from gotato_py import InvalidArgument

from .changes import RegistryChange

_LOG = logging.getLogger("gotato_toolregistry")

Listener = Callable[[RegistryChange], object]
"""Told of a change after it, in the thread that made it. What it returns is ignored; what it raises is logged."""


class Listeners:
    """Callbacks in the order in which they came. Adding, removing and copying are single dict operations: no lock."""

    __slots__ = ("_by_key", "_failed")

    def __init__(self) -> None:
        self._by_key: dict[object, Listener] = {}
        self._failed: set[object] = set()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Adds a callback; what is returned removes it again, however often it is called."""
        if not callable(listener):
            raise InvalidArgument(f"Registry.on_change: callback must be callable, not {type(listener).__name__}")
        key = object()
        self._by_key[key] = listener

        def remove() -> None:
            self._by_key.pop(key, None)
            self._failed.discard(key)

        return remove

    def tell(self, change: RegistryChange) -> None:
        """Tells every callback. One that raises keeps the change from nobody; an interrupt is raised after the last."""
        interrupt: BaseException | None = None
        for key, listener in self._by_key.copy().items():
            try:
                listener(change)
            except Exception as error:
                self._note(key, listener, error)
            except BaseException as error:
                interrupt = interrupt or error
        if interrupt is not None:
            raise interrupt

    def _note(self, key: object, listener: Listener, error: Exception) -> None:
        if key in self._failed:
            return
        self._failed.add(key)
        name = getattr(listener, "__qualname__", type(listener).__name__)
        # Neither the error's words nor its traceback: they are the program's own and may hold anything.
        _LOG.warning("the registry's callback %s raised %s; this is told once", name, type(error).__name__)
        _LOG.debug("the callback %s raised", name, exc_info=error)
