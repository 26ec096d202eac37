"""What tests of steers and follow-ups need: somebody who acts at an event, and who was told what was delivered."""

from __future__ import annotations

from collections.abc import Callable

from gotato_py import ControlDelivered, Event, Hooks

from .stage import Stage


def on(kind: str, act: Callable[[], object], *, number: int = 1) -> Hooks:
    """An observer that acts at the `number`-th event of that kind."""
    seen: list[Event] = []

    def observe(event: Event) -> None:
        if event.kind == kind:
            seen.append(event)
            if len(seen) == number:
                act()

    return Hooks(observe=observe)


def delivered(stage: Stage) -> list[tuple[str, str]]:
    """What the events say was delivered, and by which control."""
    return [(event.message_id, event.control) for event in stage.events if isinstance(event, ControlDelivered)]
