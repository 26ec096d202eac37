"""What every Tool promises (`gotato_py.Tool`)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from time import sleep

from gotato_py import (
    Agent,
    MemoryTranscript,
    Scope,
    Tool,
    ToolCall,
    ToolCallReady,
    ToolContext,
    ToolMessage,
    Validator,
    compile_schema,
)
from gotato_testkit.answers import Answer, say
from gotato_testkit.scripted import ScriptedModel

from ._suite import Ended, Suite, after, require
from ._tool_specs import problem_of

_SPEC = "a tool's `spec` is a ToolSpec that says what the tool takes (Tool.spec)"
_SPEC_TEST, _FIT = "test_its_spec_can_be_used", "test_its_arguments_fit_its_schema"
_LEFT, _RETURNS = "test_its_arguments_are_left_as_they_were", "test_a_call_returns"
_BOUNDED = "code that blocks bounds itself by `use.scope` (ToolContext)"


class ToolContract(Suite):
    """The promises of a tool: `class TestMine(ToolContract)` with a `make()` that returns one.

    The suite calls it about five times with `arguments()`: give it something that it can do, and nothing that costs.
    """

    pause: float = 0.05
    """Seconds that a call may take before it is cancelled, where that is tested."""

    def make(self) -> Tool:
        """The tool."""
        raise NotImplementedError("a ToolContract needs make(), which returns the tool to test")

    def arguments(self) -> Mapping[str, object]:
        """Arguments that it can be called with, as JSON data; {} by default."""
        return {}

    def deps(self) -> object:
        """What it finds in `use.deps`; None by default."""
        return None

    def compile(self, schema: Mapping[str, object]) -> Validator:
        """What checks arguments against its schema: the kernel's subset. Override it for a `schema_compiler`."""
        return compile_schema(schema)

    # what it says about itself

    def test_its_spec_can_be_used(self) -> None:
        """A `ToolSpec` with a name that every provider takes and a schema that can be checked."""
        problem = problem_of(self.make(), self.compile)
        require(not problem, _SPEC, found=problem, remedy="correct it where the tool is made")

    @after(_SPEC_TEST, _RETURNS)
    def test_its_spec_stays_the_same(self) -> None:
        """It is read when the agent is built, and what a model was told has to stay true."""
        tool = self.make()
        before = tool.spec
        self._execute(tool, self._use(Scope()))
        require(
            tool.spec == before,
            "a tool's `spec` is read once, and stays true (Tool.spec)",
            found="another one after a call",
            remedy="make it once, in the constructor; a set of tools that changes is a ToolSource",
        )

    @after(_SPEC_TEST)
    def test_its_arguments_fit_its_schema(self) -> None:
        """What the suite calls it with is what a model may call it with."""
        violation = self.compile(self.make().spec.input_schema)(dict(self.arguments()))
        require(
            violation is None,
            "arguments are checked against the schema before the tool sees them (Tool.execute)",
            found=f"arguments() does not fit: {violation}",
            remedy="override arguments() with some that fit, or correct the schema",
        )

    # what it does

    @after(_SPEC_TEST, _FIT, _LEFT, "test_nothing_is_asynchronous", _RETURNS)
    def test_a_call_has_a_result(self) -> None:
        """What it returns can be told to a model: text, parts, JSON data, or `Pending`."""
        tool = self.make()
        asked = ToolCallReady(ToolCall("c1", tool.spec.name, json.dumps(dict(self.arguments()))))
        model, transcript = ScriptedModel([Answer([asked]), say("Done.")]), MemoryTranscript()

        def run() -> None:
            agent = Agent(model, tools=[tool], schema_compiler=self.compile, transcript=transcript)
            agent.run("Go.", deps=self.deps(), check=False)

        ended = self.bounded(run)
        results = [each.result for each in transcript.messages if isinstance(each, ToolMessage)]
        if results and results[0].status in ("ok", "pending"):
            return
        again = self._execute(tool, self._use(Scope()))
        require(
            again.error is None,
            "a call with arguments that fit its schema does its work (Tool.execute)",
            found=f"with arguments(), {again.said()}",
            remedy="mend it; or override arguments() and deps() with what it can work with",
        )
        require(
            False,
            "a tool returns text, parts, data that JSON can say, or Pending (Tool.execute)",
            found=f"{results[0].status.value}: {results[0].error}" if results else f"no result: {ended.said()}",
            remedy="return one of these",
        )

    @after(_SPEC_TEST)
    def test_its_arguments_are_left_as_they_were(self) -> None:
        """They are the call's: hooks and the transcript see them too."""
        given = deepcopy(dict(self.arguments()))
        ended = self._execute(self.make(), self._use(Scope(), given))
        tried = isinstance(ended.error, TypeError | AttributeError) and "mappingproxy" in str(ended.error)
        require(
            given == self.arguments() and not tried,
            "`use.arguments` are read-only (ToolContext.arguments)",
            found=f"it tried to change them, and {ended.said()}" if tried else "arguments that differ after the call",
            remedy="copy what has to be changed",
        )

    @after(_SPEC_TEST)
    def test_nothing_is_asynchronous(self) -> None:
        """Nobody awaits what it returns."""
        ended = self._execute(self.make(), self._use(Scope()))
        awaitable = inspect.isawaitable(ended.value) or inspect.isasyncgen(ended.value)
        if inspect.iscoroutine(ended.value):
            ended.value.close()  # or Python warns that it was never awaited
        require(
            not awaitable,
            "this is a synchronous runtime (Tool.execute)",
            found=f"execute returned a {type(ended.value).__name__}",
            remedy="write `def`, not `async def`, and let the tool do its own waiting",
        )

    @after(_SPEC_TEST)
    def test_a_call_returns(self) -> None:
        """With a scope that does not end, the call comes to an end by itself."""
        ended = self._execute(self.make(), self._use(Scope()))
        require(
            ended.in_time,
            "a call comes to an end (Tool.execute)",
            found=f"no end within {self.patience} s",
            remedy="return Pending for work that goes on elsewhere; raise `patience` if it takes that long",
        )

    @after(_SPEC_TEST, _RETURNS)
    def test_a_scope_that_has_ended_ends_the_call(self) -> None:
        """A call under an ended scope returns or raises, promptly."""
        scope = Scope()
        scope.cancel("before the call")
        ended = self._execute(self.make(), self._use(scope))
        require(
            ended.in_time,
            _BOUNDED,
            found=f"no end within {self.patience} s under a scope that had ended",
            remedy="wait by use.scope.wait(seconds), pass timeouts of use.scope.remaining(), call use.scope.check()",
        )

    @after(_SPEC_TEST, _RETURNS)
    def test_a_cancel_ends_the_call(self) -> None:
        """A call whose scope is cancelled from another thread returns or raises, promptly."""
        scope = Scope()

        def cancel() -> None:
            sleep(self.pause)
            scope.cancel("while it runs")

        ended = self._execute(self.make(), self._use(scope), meanwhile=cancel)
        require(
            ended.in_time,
            _BOUNDED,
            found=f"no end within {self.patience} s of a cancel",
            remedy="register use.scope.on_end to wake up what blocks, or wait in slices and call use.scope.check()",
        )

    # helpers

    def _use(self, scope: Scope, arguments: Mapping[str, object] | None = None) -> ToolContext[object]:
        given = deepcopy(dict(self.arguments())) if arguments is None else arguments
        name = self.make().spec.name
        return ToolContext(name, given, call_id="c1", key="m1:0", scope=scope, deps=self.deps())

    def _execute(
        self, tool: Tool, use: ToolContext[object], *, meanwhile: Callable[[], object] | None = None
    ) -> Ended[object]:
        return self.bounded(lambda: tool.execute(use), meanwhile=meanwhile)
