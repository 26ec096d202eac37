"""Contract suites: what the kernel's Protocols promise, as tests for whoever implements one of them.

    class TestMine(TranscriptContract):
        def make(self) -> Transcript:
            return MyTranscript()

Each test says in its failure which promise is broken, what was found and what to do. One that builds upon a promise
which another test has found broken is skipped as "not judged", so that one mistake is told once. They need Hypothesis,
and run under pytest or, mixed in before `unittest.TestCase`, without it.
"""

from ._suite import BrokenPromise
from .context_builder import ContextBuilderContract
from .model import ModelContract
from .store import StoreContract
from .tool import ToolContract
from .tool_source import ToolSourceContract
from .transcript import TranscriptContract

__all__ = [
    "ModelContract",
    "ToolContract",
    "TranscriptContract",
    "ContextBuilderContract",
    "ToolSourceContract",
    "StoreContract",
    "BrokenPromise",
]
