"""What every ToolSource promises (`gotato_py.ToolSource`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gotato_py import MemoryTranscript, Tool, ToolSource, ToolSpec, TurnView, UserMessage, Validator, compile_schema

from ._suite import BrokenPromise, NotJudged, Suite, after, require, shaped
from ._tool_specs import problem_of

_SEQUENCE = "test_it_returns_a_sequence"


class ToolSourceContract(Suite):
    """The promises of a source of tools: `class TestMine(ToolSourceContract)` with a `make()` that returns one."""

    def make(self) -> ToolSource:
        """The source, with at least one tool to offer."""
        raise NotImplementedError("a ToolSourceContract needs make(), which returns the source to test")

    def view(self) -> TurnView:
        """The turn that it is asked for."""
        transcript = MemoryTranscript([UserMessage("Hello.")])
        return TurnView("", transcript.messages, transcript, run_id="r-1", turn=1)

    def compile(self, schema: Mapping[str, object]) -> Validator:
        """What checks arguments against a schema: the kernel's subset. Override it for a `schema_compiler`."""
        return compile_schema(schema)

    def test_it_returns_a_sequence(self) -> None:
        """The set holds for a whole turn, so it has to be there at once."""
        source = shaped(self.make(), "tools")
        try:
            tools: object = source.tools(self.view())
        except Exception as error:
            raise BrokenPromise(
                "tools(view) returns a sequence of tools (ToolSource.tools)",
                f"it raised {type(error).__name__}",
                "take (view), which has the turn and its transcript; mend what it raises",
            ) from error
        require(
            isinstance(tools, Sequence) and not isinstance(tools, str),
            "tools(view) returns a sequence of tools (ToolSource.tools)",
            found=f"a {type(tools).__name__}",
            remedy="return a list or a tuple",
        )

    @after(_SEQUENCE)
    def test_each_of_them_is_a_tool(self) -> None:
        """With a spec that can be used: a legal name, a schema that can be checked."""
        problems = [problem_of(each, self.compile) for each in self._offered()]
        require(
            not any(problems),
            "every tool of a source is one that an agent takes (ToolSource.tools)",
            found=next(filter(None, problems), ""),
            remedy="test it alone with ToolContract; wrap functions with @tool",
        )

    @after(_SEQUENCE)
    def test_names_differ(self) -> None:
        """A call says which tool it means by name."""
        names = [str(getattr(getattr(each, "spec", None), "name", index)) for index, each in enumerate(self._offered())]
        doubled = sorted({name for name in names if names.count(name) > 1})
        require(
            not doubled,
            "the tools of one turn have different names (ToolSource.tools)",
            found=f"more than one {', '.join(doubled)}",
            remedy="leave one of them out, or give it another name",
        )

    @after(_SEQUENCE)
    def test_nothing_changes_by_itself(self) -> None:
        """Asked again for the same turn, it offers the same: the tools are part of the cached prefix."""
        source = shaped(self.make(), "tools")
        first, again = (_specs(source.tools(self.view())) for _ in range(2))
        require(
            first == again,
            "a source offers the same tools while nothing has changed (ToolSource.tools)",
            found=f"{len(again)} tools, or others, or in another order, where there were {len(first)}",
            remedy="keep the tools in the order in which they were added",
        )

    @after(_SEQUENCE)
    def test_threads_may_share_it(self) -> None:
        """Several agents may have one source, each in a thread of its own."""
        source = shaped(self.make(), "tools")
        expected = _specs(source.tools(self.view()))
        for ended in self.together([lambda: [_specs(source.tools(self.view())) for _ in range(50)]] * 4):
            same = ended.value is not None and all(specs == expected for specs in ended.value)
            require(
                ended.in_time and ended.error is None and same,
                "a source may be asked by several threads at a time (ToolSource)",
                found=f"one of four threads: {ended.said()}" + (", with other tools" if ended.value else ""),
                remedy="guard what it keeps by a lock, or replace a tuple instead of changing a list",
            )

    def _offered(self) -> list[object]:
        offered: list[object] = list(shaped(self.make(), "tools").tools(self.view()))
        if not offered:
            raise NotJudged("it offers no tool; let make() return a source that does")
        return offered


def _specs(tools: Sequence[Tool]) -> list[ToolSpec | None]:
    return [getattr(each, "spec", None) for each in tools]
