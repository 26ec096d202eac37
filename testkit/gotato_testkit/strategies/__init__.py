"""Hypothesis strategies for what passes the kernel's seams: messages, histories, schemas, model streams, faults.

Each is a function that makes a strategy; `from gotato_testkit import strategies as gst`. The simplest value of each is
the first that shrinking tries: one short text instead of parts of every kind, no fault instead of two.
"""

from gotato_testkit._error_json import MODEL_ERRORS

from .data import extras, json_objects, json_values, texts, visible_texts
from .faults import TOOL_OPERATIONS, TRANSCRIPT_OPERATIONS, fault_plans, faults
from .histories import OpenHistory, histories, loose_histories, open_histories
from .messages import (
    assistant_messages,
    messages,
    parts,
    tool_calls,
    tool_messages,
    tool_results,
    usages,
    user_messages,
)
from .schemas import SchemaCase, schema_cases, schemas
from .streams import (
    answers,
    broken_answers,
    cut_answers,
    model_errors,
    model_events,
    scripts,
    silent_answers,
    steps,
)

__all__ = [
    # data
    "texts",
    "visible_texts",
    "json_values",
    "json_objects",
    "extras",
    # single values
    "parts",
    "usages",
    "tool_calls",
    "tool_results",
    "user_messages",
    "assistant_messages",
    "tool_messages",
    "messages",
    # histories
    "histories",
    "open_histories",
    "OpenHistory",
    "loose_histories",
    # schemas
    "schemas",
    "schema_cases",
    "SchemaCase",
    # what a model streams
    "model_events",
    "model_errors",
    "MODEL_ERRORS",
    "answers",
    "cut_answers",
    "broken_answers",
    "silent_answers",
    "steps",
    "scripts",
    # what fails
    "faults",
    "fault_plans",
    "TRANSCRIPT_OPERATIONS",
    "TOOL_OPERATIONS",
]
