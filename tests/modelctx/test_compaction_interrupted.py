"""Ctrl-C at the lines of compaction and offload: what they remember stays true."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import gotato_modelctx
from gotato_modelctx.auto_compact import AutoCompact
from gotato_modelctx.offload import Offload
from gotato_modelctx.policy import CompactPolicy
from gotato_modelctx.summarizers import TruncateSummarizer
from gotato_py import MemoryTranscript, TurnView
from gotato_testkit import ManualClock, call, say

from ..effort import by_profile
from ..kernel.laws import assert_laws
from ..kernel.stage import Stage

PACKAGE = str(Path(gotato_modelctx.__file__ or "").parent)
STRIDE = by_profile(dev=47, ci=29, nightly=1)


class InterruptAt:
    """Raises `KeyboardInterrupt` before the `number`-th line of the package, once; `lines` is how many there were."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.lines = 0

    def enter(self, frame: FrameType, event: str, argument: object) -> Any:
        """As `sys.settrace` takes it."""
        return self._count if frame.f_code.co_filename.startswith(PACKAGE) else None

    def _count(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and "_lock" not in frame.f_code.co_names:  # no signal comes in between there
            self.lines += 1
            if self.lines == self._number:
                raise KeyboardInterrupt
        return self._count


def work(words: int) -> str:
    """Works."""
    return "word " * words


def played(number: int) -> int:
    """Plays four runs, with Ctrl-C at a line in one of them; asserts that nothing is wrong. Returns the lines."""
    offload = Offload(lambda text: "there", max_tokens=300, shown_tokens=60)
    auto = AutoCompact(CompactPolicy(400, 150), TruncateSummarizer(50), measure=offload.tokens)
    stage = Stage(
        *(call("work", words=400) + call("work", words=20), say("word " * 40), call("work", words=90)),
        *(say("word " * 60), call("work", words=300), say("Ok."), say("word " * 90), say("Fine.")),
        tools=[work], extensions=[auto, offload], clock=ManualClock(),
    )  # fmt: skip
    interrupted = InterruptAt(number)
    before = sys.gettrace()
    for text in ("one", "two " * 40, "three", "four"):
        sys.settrace(interrupted.enter)
        try:
            stage.run(text)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
    messages = stage.transcript.messages
    view = TurnView("", messages, stage.transcript, "later", 1)
    auto.before_turn(view)
    known = auto._known.of(stage.transcript)
    assert known.load.estimated == sum(map(offload.tokens, view.messages))
    fresh = Offload(lambda text: "there", max_tokens=300, shown_tokens=60)
    shown = offload.transform(view, messages)
    assert list(shown) == list(fresh.transform(TurnView("", messages, MemoryTranscript(messages)), messages))
    assert_laws(stage)
    return interrupted.lines


def test_an_interrupt_at_any_line() -> None:
    """The run is closed, the next ones work, and what was counted and shown is as if nothing had happened."""
    lines = played(0)
    assert lines > 500
    for number in range(1, lines, STRIDE):
        played(number)
