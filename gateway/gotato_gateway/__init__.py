"""gotato_gateway: models over HTTP, one adapter a dialect."""

from .adapter import Adapter
from .connect import connect
from .openai_chat import OpenAIChat
from .quirks import Quirks

__all__ = ["Adapter", "OpenAIChat", "Quirks", "connect"]
