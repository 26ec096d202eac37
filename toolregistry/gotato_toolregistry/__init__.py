"""gotato_toolregistry: tools by the dozen. A registry that agents draw from, and the whole of JSON Schema."""

from .changes import RegistryChange
from .json_schema import jsonschema_compiler
from .registry import Registry

__all__ = [
    # the registry
    "Registry",
    "RegistryChange",
    # the full JSON Schema
    "jsonschema_compiler",
]
