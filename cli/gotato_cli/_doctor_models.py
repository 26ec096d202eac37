"""The part of `gotato doctor` about models: which keys are set, what is configured. Shows names, never a value."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

from gotato_py import GotatoError


def keys_set(found: dict[str, Any]) -> list[str]:
    """The variables of known services, and of what is configured, that hold a key, by name."""
    gateway = _gateway()
    if gateway is None:
        return []
    configured = [model["api_key_env"] for model in found["models"].values()]
    return [name for name in dict.fromkeys([*gateway.KEY_VARIABLES, *configured]) if name and os.environ.get(name)]


def configuration() -> dict[str, Any]:
    """Where the configuration is, what it names, and what is wrong with it; `problem` is "" for nothing."""
    gateway = _gateway()
    if gateway is None:
        return {"path": None, "problem": "", "models": {}}
    try:
        config = gateway.load_config()
    except GotatoError as error:
        return {"path": None, "problem": str(error), "models": {}}
    models = {name: _described(gateway, config, name) for name in config.models}
    return {"path": None if config.path is None else str(config.path.absolute()), "problem": "", "models": models}


def lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The configuration for people: what it is about, and what there is to say."""
    told = [("config", found["problem"] or found["path"] or "none")]
    for name, model in found["models"].items():
        what = model["model"] or "failover: " + ", ".join(model["failover"])
        where = f" at {model['base_url']}" if model["base_url"] else ""
        key = f", key from {model['api_key_env']}" if model["api_key_env"] else ""
        told.append((f"  {name}", model["problem"] or f"{what}{where}{key}"))
    return told


def sound(found: dict[str, Any]) -> bool:
    """Whether all that is configured can be used."""
    return not found["problem"] and not any(model["problem"] for model in found["models"].values())


def _described(gateway: ModuleType, config: Any, name: str) -> dict[str, Any]:  # Any: of the gateway, loaded late
    entry = config.models[name]
    try:
        gateway.connect(name, config=config)  # sends nothing
        problem = ""
    except GotatoError as error:
        problem = str(error)
    return {
        "model": entry.model,
        "failover": list(entry.failover),
        "base_url": entry.base_url or "",
        "api_key_env": entry.api_key_env,
        "problem": problem,
    }


def _gateway() -> ModuleType | None:
    """The gateway, if what it needs is installed; what is not is told by the report's versions."""
    try:
        return import_module("gotato_gateway")
    except ImportError:
        return None
