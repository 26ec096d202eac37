"""What the suites for transcripts share: how one is opened, and which of their tests the others build upon."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gotato_py import Transcript

from ._suite import Suite, shaped

SEQUENCE = "test_a_view_is_a_sequence"
APPENDS = "test_append_returns_the_message_with_its_id"
KEEPS = "test_what_is_appended_is_kept"
NEW_IDS = "test_append_gives_ids_that_differ"
STAYS = "test_a_view_stays_as_it_was"


class TranscriptSuite(Suite):
    """What the suites for transcripts share."""

    def make(self) -> Transcript:
        """The transcript: the same place each time, opened as another process would, where it can persist."""
        raise NotImplementedError("a TranscriptContract needs make(), which returns the transcript to test")

    def close(self, transcript: Transcript) -> None:
        """Lets go of a transcript, as its process would at its end; calls its `close` if it has one."""
        close = getattr(transcript, "close", None)
        if close is not None:
            close()

    @contextmanager
    def opened(self) -> Generator[Transcript]:
        """A transcript, closed at the end."""
        transcript = shaped(self.make(), "messages", "started", "waiting", "append", "mark_started", "mark_waiting")
        try:
            yield transcript
        finally:
            self.close(transcript)
