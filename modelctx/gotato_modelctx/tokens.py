"""How many tokens a text, a message or a whole request will take, before a provider has counted them.

The default counts bytes: four bytes of UTF-8 are about one token, in every model's vocabulary within a third or so for
prose and code. What a provider reports for a finished answer is better; this is for what nobody has counted yet.
`tiktoken_counter` counts text by a real vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from gotato_py import (
    AssistantMessage,
    AudioPart,
    FilePart,
    ImagePart,
    InvalidArgument,
    JSONPart,
    Message,
    ModelContext,
    ModelRequest,
    NotSupported,
    Part,
    ReasoningPart,
    TextPart,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

from ._arguments import check_counter, is_sequence, wrong

TokenCounter = Callable[[str], int]
"""Tokens of a text."""

Measurable = str | Message | Sequence[Message] | ModelContext | ModelRequest | ToolSpec
"""What `estimate_tokens` takes."""

BYTES_A_TOKEN = 4
MESSAGE_TOKENS = 4
"""For a message itself: its role and its borders."""

CALL_TOKENS = 8
"""For a tool call or the description of a tool, besides its texts: ids, names of fields, borders."""

IMAGE_TOKENS = 1200
"""For a picture, whatever its bytes: providers count pixels, a megapixel is usual. 100 with `detail="low"`."""

LINK_TOKENS = 1000
"""For a file that is given by its URL: nobody here knows how large it is."""

AUDIO_BYTES_A_TOKEN = 400
"""For sound: some 10 to 30 tokens a second, at 4 to 16 kB a second compressed."""

FILE_BYTES_A_TOKEN = 40
"""For a file that is no text, such as a PDF: a page of 50 to 100 kB takes 1500 to 2500 tokens."""

_LOW_IMAGE_TOKENS = 100
_TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def estimate_tokens(what: Measurable, *, counter: TokenCounter | None = None) -> int:
    """About how many tokens this takes in a request: a text, a message, messages, a context, a request, a tool.

    The same for the same input, never less for more of it, 0 only for what is empty, and the sum over messages is the
    estimate of their sequence. `counter` counts texts; None takes a quarter of the UTF-8 bytes, rounded up. Pictures,
    sound and files are counted by the constants of this module. What is not sent (ids, metadata) does not count. Costs
    time in proportion to the size of `what`. Raises `InvalidArgument` for anything else.
    """
    check_counter("estimate_tokens: counter", counter)
    count = bytes_counter if counter is None else counter
    if isinstance(what, str):
        return _text(what, count)
    if isinstance(what, UserMessage | AssistantMessage | ToolMessage):
        return message_tokens(what, count)
    if isinstance(what, ModelContext):
        return _text(what.system, count) + _messages(what.messages, count) + _text(what.panel, count)
    if isinstance(what, ModelRequest):
        schema = what.options.response_schema
        asked = _json(schema, count) if schema is not None else 0
        tools = sum(_tool(spec, count) for spec in what.tools)
        return _text(what.system, count) + tools + _messages(what.messages, count) + asked
    if isinstance(what, ToolSpec):
        return _tool(what, count)
    if is_sequence(what):
        return _messages(what, count)
    said = "a str, a message, a sequence of messages, a ModelContext, a ModelRequest or a ToolSpec"
    raise InvalidArgument(f"estimate_tokens: takes {said}, not {type(what).__name__}")


def message_tokens(message: Message, counter: TokenCounter | None = None) -> int:
    """The estimate for one message; `estimate_tokens` of it, without the questions what it is."""
    count = bytes_counter if counter is None else counter
    total = MESSAGE_TOKENS
    if isinstance(message, ToolMessage):
        if not message.parts:
            return total + _text(message.text, count)
    elif isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            total += CALL_TOKENS + _text(call.name, count) + _text(call.arguments, count)
    for part in message.parts:
        total += part_tokens(part, count)
    return total


def part_tokens(part: Part, counter: TokenCounter | None = None) -> int:
    """The estimate for one part of a message."""
    count = bytes_counter if counter is None else counter
    match part:
        case TextPart(text):
            return _text(text, count)
        case ReasoningPart(text, signature):  # sealed reasoning is sent back in place of its text, or beside it
            return max(_text(text, count), _text(signature, bytes_counter))
        case JSONPart(data):
            return _json(data, count)
        case ImagePart():
            return _LOW_IMAGE_TOKENS if part.detail == "low" else IMAGE_TOKENS
        case AudioPart(data):
            return _share(len(data), AUDIO_BYTES_A_TOKEN)
        case FilePart(None):
            return LINK_TOKENS
        case FilePart(data, None, media_type):
            each = BYTES_A_TOKEN if media_type.startswith(_TEXT_TYPES) else FILE_BYTES_A_TOKEN
            return _share(len(data or b""), each)
        case _:  # a FilePart has data or a URL, never both
            raise InvalidArgument(f"estimate_tokens: takes parts of messages, not {type(part).__name__}")


def bytes_counter(text: str) -> int:
    """A quarter of the text's UTF-8 bytes, rounded up: the default counter. Raises `InvalidArgument` for no text."""
    try:
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    except AttributeError:
        raise wrong("bytes_counter: text", "a str", text) from None
    return _share(size, BYTES_A_TOKEN)


def tiktoken_counter(encoding: str = "o200k_base") -> TokenCounter:
    """A counter by one of the vocabularies of the package `tiktoken` (the extra "tokens"); text alone is counted by it.

    That package downloads a vocabulary at its first use and keeps it. Raises `NotSupported` without the package or when
    the vocabulary cannot be loaded, `InvalidArgument` for one that it does not know.
    """
    if not isinstance(encoding, str):
        raise InvalidArgument(f"tiktoken_counter: encoding must be a str, not {type(encoding).__name__}")
    library = _tiktoken()
    if encoding not in library.list_encoding_names():
        raise InvalidArgument(f"tiktoken_counter: tiktoken knows no encoding of that name; {_known(library)}")
    try:
        vocabulary = library.get_encoding(encoding)
    except Exception as error:  # whatever the download raises: the network, the disk, a checksum
        text = f"tiktoken could not load {encoding}: it downloads it at first use, into TIKTOKEN_CACHE_DIR"
        raise NotSupported(text, operation="tiktoken_counter", cause=error) from error

    def count(text: str) -> int:
        return len(vocabulary.encode(text, disallowed_special=()))

    return count


def _messages(messages: Sequence[Message], count: TokenCounter) -> int:
    total = 0
    for index, message in enumerate(messages):
        if not isinstance(message, UserMessage | AssistantMessage | ToolMessage):
            raise InvalidArgument(f"estimate_tokens: messages[{index}] is a {type(message).__name__}, not a message")
        total += message_tokens(message, count)
    return total


def _text(text: str, count: TokenCounter) -> int:
    return max(1, count(text)) if text else 0


def _tool(spec: ToolSpec, count: TokenCounter) -> int:
    return CALL_TOKENS + _text(spec.name, count) + _text(spec.description, count) + _json(spec.input_schema, count)


def _json(data: object, count: TokenCounter) -> int:
    return _text(_encode(data), count)


def _share(size: int, each: int) -> int:
    return -(-size // each)


def _known(library: Any) -> str:  # Any: a module that is not known before it is imported
    return "it has " + ", ".join(library.list_encoding_names())


def _tiktoken() -> Any:  # Any: the same
    try:
        return import_module("tiktoken")
    except ImportError:
        raise NotSupported("this counter needs the package tiktoken: pip install gotato-py[tokens]") from None
