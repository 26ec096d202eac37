"""gotato_testkit: a scripted model, fake tools, a clock that moves by hand. Runs of an agent without a network.

Beside what is here there are `gotato_testkit.server`, a provider on the loopback, `gotato_testkit.strategies` and
`gotato_testkit.contracts`, which need Hypothesis, and `gotato_testkit.fixtures`, which needs pytest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .answers import Answer, call, say, think
from .clocks import ManualClock, SequentialIds
from .fakes import EventRecorder, FakeTool
from .faults import Fault, FaultPlan, FaultyTool, FaultyTranscript
from .model_event_json import model_event_from_dict, model_event_to_dict
from .models import DemoModel, EchoModel
from .outlines import outline
from .recording import RecordingModel
from .replay import ReplayMismatch, ReplayModel
from .scripted import ScriptedModel, ScriptExhausted
from .steps import Do, Raise, RaiseOnClose, Return, Stall, Step, Wait

if TYPE_CHECKING:
    from .faulty_store import FaultyStore

__all__ = [
    # scripts
    "ScriptedModel",
    "ScriptExhausted",
    "Step",
    "Answer",
    "say",
    "call",
    "think",
    "Raise",
    "Stall",
    "Do",
    "Wait",
    "RaiseOnClose",
    "Return",
    # models without a script
    "EchoModel",
    "DemoModel",
    # recordings of real ones
    "RecordingModel",
    "ReplayModel",
    "ReplayMismatch",
    "model_event_to_dict",
    "model_event_from_dict",
    # what stands in for the rest of the world
    "FakeTool",
    "EventRecorder",
    "ManualClock",
    "SequentialIds",
    "outline",
    # what goes wrong in it
    "Fault",
    "FaultPlan",
    "FaultyTool",
    "FaultyTranscript",
    "FaultyStore",
]


def __getattr__(name: str) -> object:
    """FaultyStore, when it is asked for: it loads `gotato_session` and SQLite, which most tests and `gotato run` do not
    need."""
    if name == "FaultyStore":
        return import_module(f"{__name__}.faulty_store").FaultyStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
