"""Models by names of one's own, from a TOML file; keys come from environment variables, never from the file.

    [models.fast]
    model = "anthropic:claude-haiku-4-5"
    options = { max_tokens = 2000, temperature = 0.2 }

    [models.house]
    model = "openai:qwen3"
    base_url = "https://llm.example.org/v1"
    api_key_env = "HOUSE_KEY"                                    # the variable that holds the key
    headers = { X-Team = "search", X-Pass = { env = "HOUSE_PASS" } }
    connect_timeout = 5.0                                        # seconds
    idle_timeout = 60.0
    quirks = { think_tags = true }                               # what differs from those known for the host

    [models.safe]
    failover = ["fast", "house", "openai:gpt-5"]

`connect("safe")` makes a model of it. What is written wrong is an `InvalidArgument` that names file, table and key.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gotato_py import InvalidArgument, ModelOptions, NotFound

from ._config_values import Table, check_keys, check_quirks, read_headers, read_options, variable_name
from ._endpoint import checked_base_url, checked_seconds
from ._json import is_object, items, obj, text
from ._keys import secrets_in

VARIABLE = "GOTATO_CONFIG"
_OF_A_GROUP = ("failover", "options")
_OF_A_MODEL = (
    *("model", "base_url", "api_key_env", "headers", "connect_timeout", "idle_timeout", "quirks", "options"),
    "failover",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """One configured model: `model` ("provider:model") and how to reach it, or the names in `failover`.

    `header_variables` are headers whose value is that of an environment variable. `options` count where a request
    leaves the choice. `where` is the place in the file, for errors.
    """

    name: str
    where: str = ""
    model: str = ""
    failover: tuple[str, ...] = ()
    base_url: str | None = None
    api_key_env: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    header_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    connect_timeout: float | None = None
    idle_timeout: float | None = None
    quirks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: ModelOptions = field(default_factory=ModelOptions)


@dataclass(frozen=True, slots=True)
class Config:
    """What a file configures, by name; `path` is None where there is no file."""

    path: Path | None = None
    models: Mapping[str, ModelConfig] = field(default_factory=dict[str, ModelConfig])


def load_config(path: str | os.PathLike[str] | None = None) -> Config:
    """The configuration in a file: `path`, else the one that GOTATO_CONFIG names, else `gotato/config.toml` in
    XDG_CONFIG_HOME or `~/.config`; where that is not there, it is empty.

    No file of the current folder is read unless it is named: one that came with somebody's project could send a key to
    an address of its own.

    Raises `NotFound` for a file that was named and is not there, `InvalidArgument` for one that cannot be read or is
    written wrong.
    """
    found = _find(path)
    if found is None:
        return Config()
    try:
        with found.open("rb") as stream:
            said: Table = tomllib.load(stream)
    except FileNotFoundError:
        raise NotFound(f"load_config: there is no file {found}") from None
    except OSError as error:
        raise InvalidArgument(f"load_config: {found} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"load_config: {found} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"load_config: {found} is no TOML: {error}") from None
    return Config(found, _read(str(found), said))


def _find(path: str | os.PathLike[str] | None) -> Path | None:
    named = os.environ.get(VARIABLE, "") if path is None else path
    if named:
        return Path(named)
    own = _of_user()
    return own if own is not None and own.is_file() else None


def _of_user() -> Path | None:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        return (Path(folder) if folder else Path.home() / ".config") / "gotato" / "config.toml"
    except RuntimeError:  # nobody's home
        return None


def _read(file: str, said: Table) -> dict[str, ModelConfig]:
    check_keys(file, said, ("models",))
    if not is_object(said.get("models", {})):
        raise InvalidArgument(f"{file}: models must be tables, such as [models.fast]")
    models: dict[str, ModelConfig] = {}
    for name, table in obj(said.get("models")).items():
        where = f"{file}: [models.{name}]"
        if not name.strip() or ":" in name:
            raise InvalidArgument(f'{where}: a name has no ":", which is for "provider:model", and is not blank')
        if not is_object(table):
            raise InvalidArgument(f"{where} must be a table")
        models[name] = _read_group(name, where, table) if "failover" in table else _read_model(name, where, table)
    for name in models:
        _check_group(name, models, ())
    return models


def _read_model(name: str, where: str, table: Table) -> ModelConfig:
    check_keys(where, table, _OF_A_MODEL)
    model = _text(where, table, "model")
    if not model:
        raise InvalidArgument(f'{where}: model = "provider:model" is missing')
    if ":" not in model:
        raise InvalidArgument(f'{where}: model must be "provider:model"; several names go into failover = [...]')
    base_url = checked_base_url(where, table["base_url"]) if "base_url" in table else None
    if base_url is not None and secrets_in("", {}, base_url):
        raise InvalidArgument(f"{where}: base_url holds a password or a key; a file is no place for it")
    headers, header_variables = read_headers(where, table.get("headers", {}))
    quirks: Table = table.get("quirks", {})
    check_quirks(f"{where}: quirks", quirks)
    return ModelConfig(
        name=name,
        where=where,
        model=model,
        base_url=base_url,
        api_key_env=variable_name(f"{where}: api_key_env", table["api_key_env"]) if "api_key_env" in table else "",
        headers=headers,
        header_variables=header_variables,
        connect_timeout=_seconds(where, table, "connect_timeout"),
        idle_timeout=_seconds(where, table, "idle_timeout"),
        quirks=quirks,
        options=read_options(f"{where}: options", table.get("options", {})),
    )


def _read_group(name: str, where: str, table: Table) -> ModelConfig:
    for key in table:
        if key in _OF_A_MODEL and key not in _OF_A_GROUP:
            raise InvalidArgument(f"{where}: {key} goes with one model, not with failover; give it a table of its own")
    check_keys(where, table, _OF_A_GROUP)
    names = [text(each).strip() for each in items(table["failover"])]
    if not names or not all(names):
        raise InvalidArgument(f'{where}: failover must be a list of names, such as ["fast", "openai:gpt-5"]')
    options = read_options(f"{where}: options", table.get("options", {}))
    return ModelConfig(name=name, where=where, failover=tuple(names), options=options)


def _check_group(name: str, models: Mapping[str, ModelConfig], above: tuple[str, ...]) -> None:
    """Refuses a name that is not configured, and a group that holds itself."""
    for each in models[name].failover:
        if ":" in each:
            continue
        if each not in models:
            raise InvalidArgument(f"{models[name].where}: failover: no model {each!r} is configured")
        if each in (*above, name):
            raise InvalidArgument(
                f"{models[name].where}: failover: {' → '.join((*above, name, each))} goes in a circle"
            )
        _check_group(each, models, (*above, name))


def _text(where: str, table: Table, key: str) -> str:
    if not isinstance(table.get(key, ""), str):
        raise InvalidArgument(f"{where}: {key} must be a string")
    return text(table.get(key)).strip()


def _seconds(where: str, table: Table, key: str) -> float | None:
    return checked_seconds(f"{where}: {key}", table[key]) if key in table else None
