"""A session keeps what every transcript promises."""

from __future__ import annotations

from gotato_session import Session
from gotato_testkit.contracts import TranscriptContract


class TestSession(TranscriptContract):
    """The suite for transcripts, on a session in memory."""

    def make(self) -> Session:
        """A new session."""
        return Session()
