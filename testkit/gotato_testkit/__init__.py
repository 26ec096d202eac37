"""gotato_testkit: a scripted model, fake tools, a clock that moves by hand. Runs of an agent without a network."""

from .answers import Answer, call, say, think
from .clocks import ManualClock, SequentialIds
from .fakes import EventRecorder, FakeTool
from .faults import Fault, FaultPlan, FaultyTool, FaultyTranscript
from .models import DemoModel, EchoModel
from .outlines import outline
from .scripted import ScriptedModel, ScriptExhausted
from .steps import Do, Raise, RaiseOnClose, Return, Stall, Step, Wait

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
]
