"""What every Transcript promises (`gotato_py.Transcript`)."""

from __future__ import annotations

from ._transcript_basics import MarksContract, MessagesContract
from ._transcript_options import CompactionContract, RunsContract
from ._transcript_reopening import ReopeningContract


class TranscriptContract(MessagesContract, MarksContract, CompactionContract, RunsContract, ReopeningContract):
    """The promises of a transcript: `class TestMine(TranscriptContract)` with a `make()` that returns one.

    A transcript that keeps its history says `persistent = True`, and each `make()` opens the same place, as another
    process would; the suite calls `close` in between (override it where letting go takes more than that). It may hold
    messages already, as long as no call is open. Optional members are tested if they are there.
    """
