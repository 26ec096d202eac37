"""The registry against a dict: whatever is done to it, it holds, offers and tells what the dict says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gotato_py import InvalidArgument, NotFound, Tool
from gotato_testkit import FakeTool
from gotato_toolregistry import Registry, RegistryChange

from ..effort import costly

NAMES = st.sampled_from("abcde")
SEVERAL = st.lists(NAMES, max_size=4)


class Follower:
    """A listener that knows the registry from its changes alone."""

    def __init__(self, registry: Registry) -> None:
        self.known = {each.spec.name for each in registry.list()}
        self.active = set(registry.active)
        self.tools = registry.tools()
        self.version = -1

    def __call__(self, change: RegistryChange) -> None:
        assert change.version == self.version + 1 or self.version < 0
        assert self.known.isdisjoint(change.added)
        assert self.known.issuperset([*change.removed, *change.replaced])
        assert self.active.isdisjoint(change.activated)
        assert self.active.issuperset(change.deactivated)
        assert any([change.added, change.removed, change.replaced, change.activated, change.deactivated])
        self.known = (self.known | {*change.added}) - {*change.removed}
        self.active = (self.active | {*change.activated}) - {*change.deactivated}
        self.version, self.tools = change.version, change.tools
        assert set(change.active) == self.active


class RegistryMachine(RuleBasedStateMachine):
    """The registry, the dict that it should equal, and those who listen."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.model: dict[str, tuple[Tool, bool]] = {}
        self.followers: list[tuple[Follower, Callable[[], None]]] = []
        self.offered: tuple[Tool, ...] = self.registry.tools()

    @rule(name=NAMES, active=st.booleans(), replace=st.booleans())
    def register(self, name: str, active: bool, replace: bool) -> None:
        tool = FakeTool(name)
        if name in self.model and not replace:
            with pytest.raises(InvalidArgument):
                self.registry.register(tool, active=active)
            return
        assert self.registry.register(tool, active=active, replace=replace) is tool
        self.model[name] = (tool, active)

    @rule(name=NAMES)
    def unregister(self, name: str) -> None:
        if name not in self.model:
            with pytest.raises(NotFound):
                self.registry.unregister(name)
            return
        assert self.registry.unregister(name) is self.model.pop(name)[0]

    @rule(names=SEVERAL, active=st.booleans())
    def switch(self, names: list[str], active: bool) -> None:
        act = self.registry.activate if active else self.registry.deactivate
        if not self.model.keys() >= set(names):
            with pytest.raises(NotFound):
                act(*names)
            return
        act(*names)
        self.model |= {name: (self.model[name][0], active) for name in names}

    @rule()
    def follow(self) -> None:
        follower = Follower(self.registry)
        self.followers.append((follower, self.registry.on_change(follower)))

    @rule(index=st.integers(0, 3))
    def leave(self, index: int) -> None:
        if index < len(self.followers):
            self.followers.pop(index)[1]()

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        assert self.registry.list() == tuple(tool for tool, _ in self.model.values())
        for name, (tool, active) in self.model.items():
            assert self.registry.lookup(name) is tool
            assert self.registry.describe(name)["active"] is active

    @invariant()
    def it_offers_what_is_active(self) -> None:
        expected = tuple(tool for tool, active in self.model.values() if active)
        offered = self.registry.tools()
        assert offered == expected
        assert (offered is self.offered) == (expected == self.offered)
        assert self.registry.active == tuple(name for name, (_, active) in self.model.items() if active)
        self.offered = offered

    @invariant()
    def it_told_every_change(self) -> None:
        for follower, _ in self.followers:
            assert follower.known == set(self.model)
            assert follower.active == set(self.registry.active)
            assert follower.tools == self.registry.tools()


RegistryMachine.TestCase.__doc__ = "A registry and the dict that it should equal never differ."
RegistryMachine.TestCase.settings = costly(4)
TestRegistry = RegistryMachine.TestCase
