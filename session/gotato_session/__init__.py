"""Transcripts that know their runs: `Session`, and `record`, an observer that keeps events in one.

A session is what happened, in order: messages, marks, compactions, runs, labels, events. This release keeps it in
memory; the stores that keep it on disk, forks and branches come behind the same names.
"""

from ._recorder import Recorder
from .recording import record
from .session import Session

__all__ = ["Recorder", "Session", "record"]
