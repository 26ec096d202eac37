"""gotato_gateway: models over HTTP, one adapter a dialect, and what stands around them."""

from ._named import NamedModel
from ._providers import KEY_VARIABLES, PROVIDERS, Provider
from .adapter import Adapter
from .anthropic_messages import AnthropicMessages
from .config import Config, ModelConfig, load_config
from .connect import connect, list_models
from .failover import Failover, another_may_answer
from .gemini import Gemini
from .model_list import ModelInfo
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses
from .prices import cost_of
from .quirks import Quirks
from .rate_limiter import RateLimiter

__all__ = [
    # adapters
    "Adapter",
    "AnthropicMessages",
    "Gemini",
    "OpenAIChat",
    "OpenAIResponses",
    "Quirks",
    # models by name
    "connect",
    "list_models",
    "load_config",
    "Config",
    "KEY_VARIABLES",
    "ModelConfig",
    "ModelInfo",
    "NamedModel",
    "PROVIDERS",
    "Provider",
    # models around models
    "Failover",
    "another_may_answer",
    "RateLimiter",
    # prices
    "cost_of",
]
