"""What a change of a registry tells whoever listens."""

from __future__ import annotations

from dataclasses import dataclass, field

from gotato_py import Tool

from ._snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """One change of a `Registry`, and the registry right after it. Names are in the order of registration.

    `added`, `removed` and `replaced` are about the tools that are registered; `activated` and `deactivated` are about
    those that agents get, so a tool that is registered as active is in both `added` and `activated`. `version` counts
    the changes: of two that reach a listener from two threads, the one with the higher version is the newer.
    """

    version: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()
    deactivated: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = field(default=(), repr=False)


def change_between(before: Snapshot, after: Snapshot) -> RegistryChange:
    """What made `after` of `before`."""
    old, new = before.entries, after.entries
    was_active, is_active = set(before.active), set(after.active)
    return RegistryChange(
        version=after.version,
        added=tuple([name for name in new if name not in old]),
        removed=tuple([name for name in old if name not in new]),
        replaced=tuple([name for name in new if name in old and not new[name].same_tool(old[name])]),
        activated=tuple([name for name in after.active if name not in was_active]),
        deactivated=tuple([name for name in before.active if name not in is_active]),
        active=after.active,
        tools=after.tools,
    )
