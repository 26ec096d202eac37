"""The model that a command is to ask."""

from __future__ import annotations

from importlib import import_module

from gotato_py import InvalidArgument, Model, NotFound
from gotato_testkit import DemoModel, EchoModel

from ._problems import UsageError


def model_of(name: str, base_url: str | None) -> Model:
    """The model by its name. Raises `UsageError` for what is none, or cannot be used as it is configured."""
    if name in {"demo", "echo"}:
        if base_url is not None:
            raise UsageError(f"--base-url goes with PROVIDER:NAME; the model {name!r} needs no network")
        return DemoModel() if name == "demo" else EchoModel()
    try:
        gateway = import_module("gotato_gateway")  # only now: the other models need none of what it imports
    except ImportError as error:
        raise UsageError(f"{name} needs the package {error.name!r}; install it, or gotato-py as a whole") from None
    try:
        config = None if ":" in name else gateway.load_config()
        if config is not None and name not in config.models:
            raise UsageError(_unknown(name, config.path))
        model: Model = gateway.connect(name, base_url=base_url, config=config)
    except (InvalidArgument, NotFound) as error:
        raise UsageError(str(error)) from None
    return model


def _unknown(name: str, path: object) -> str:
    where = "there is no configuration file" if path is None else f"{path} has no [models.{name}]"
    return f"no model {name!r}; --model takes demo, echo, PROVIDER:NAME (openai:gpt-5) or a configured name; {where}"
