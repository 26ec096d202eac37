"""What the model sees: sections, rules, windows, compaction, and a look at the next request."""

from ._context_notes import Dropped, Placed
from ._inspected_parts import InspectedPart
from .auto_compact import AutoCompact
from .builders import Chain, with_panel, with_static
from .compacting import compact
from .cuts import cut_points, last_cut_within, tail_start
from .inspection import Inspection, inspect
from .model_summarizer import ModelSummarizer
from .offload import Offload
from .policy import CompactPolicy
from .rules import Rules
from .sections import Section, SectionLike, Sections, SectionSource, render_sections
from .sources import Json, Resource, Text, Time
from .summaries import Summary, is_summary, summary_message
from .summarizers import Summarizer, TruncateSummarizer
from .tokens import TokenCounter, bytes_counter, estimate_tokens, tiktoken_counter
from .window import SummaryRecent, Window

__all__ = [
    # how large something is
    "TokenCounter",
    "bytes_counter",
    "estimate_tokens",
    "tiktoken_counter",
    # where a history may be cut
    "cut_points",
    "last_cut_within",
    "tail_start",
    # sections, and where they come from
    "Json",
    "Resource",
    "Rules",
    "Section",
    "SectionLike",
    "SectionSource",
    "Sections",
    "Text",
    "Time",
    "render_sections",
    # builders
    "Chain",
    "SummaryRecent",
    "Window",
    "with_panel",
    "with_static",
    # compaction
    "AutoCompact",
    "CompactPolicy",
    "ModelSummarizer",
    "Offload",
    "Summarizer",
    "Summary",
    "TruncateSummarizer",
    "compact",
    "is_summary",
    "summary_message",
    # what the model would see now
    "Dropped",
    "InspectedPart",
    "Inspection",
    "Placed",
    "inspect",
]
