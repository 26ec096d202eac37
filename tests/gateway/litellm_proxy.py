"""A LiteLLM proxy in a process of its own: a peer that no one here wrote, between the adapters and a provider."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from gotato_gateway import Adapter, AnthropicMessages, Gemini, OpenAIChat, OpenAIResponses

from .server import Received, Reply, Server

MOCKED, MOCK = "mocked", "Hello from a peer."
LOST = {"overflow": "litellm.ContextWindowExceededError", "limited": "litellm.RateLimitError"}
_PATIENCE_S = 180.0
_PATHS: Mapping[type[Adapter], str] = {OpenAIChat: "/v1", OpenAIResponses: "/v1", AnthropicMessages: "", Gemini: ""}


class Proxy:
    """The proxy, and what it asks in the end: `behave` answers for the provider of its model "behind"."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._received: list[Received] = []
        self.behave: Callable[[Received], Reply] = lambda received: Reply(status=500)

    def provide(self, received: Received) -> Reply:
        """What the provider answers."""
        self._received.append(received)
        return self.behave(received)

    def adapter(self, kind: type[Adapter], model: str = "behind") -> Adapter:
        """An adapter that asks the proxy for one of its models."""
        return kind(model, api_key=self._key, base_url=self._url + _PATHS[kind])

    def asked(self) -> list[Any]:
        """The bodies of the requests that reached the provider since the last look."""
        received, self._received = self._received, []
        return [each.json for each in received]


@contextmanager
def running(folder: Path) -> Generator[Proxy]:
    """A proxy that has started, until the end of the block."""
    key = f"sk-{secrets.token_hex(16)}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    proxy = Proxy(f"http://127.0.0.1:{port}", key)
    with Server(proxy.provide) as provider:
        config, log = folder / "config.yaml", folder / "log.txt"
        config.write_text(json.dumps(_config(key, provider.url)), "utf-8")  # JSON is YAML, too
        process = _start(config, port, log, folder)
        try:
            _wait(f"http://127.0.0.1:{port}/health/liveliness", process, log)
            yield proxy
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _config(key: str, provider: str) -> dict[str, Any]:
    """Its models: one that is mocked, some that are mocked to fail, and one of the provider, asked in the chat dialect.

    The proxy translates for that one whatever dialect it was itself asked in. It asks once, and no failure is held
    against the provider.
    """
    mocked = {"model": "openai/gpt-4o", "api_key": "none"}
    behind = {"model": "lm_studio/some-model", "api_key": "none", "api_base": provider, "max_retries": 0}
    models = {MOCKED: mocked | {"mock_response": MOCK}, "behind": behind}
    models |= {name: mocked | {"mock_response": word} for name, word in LOST.items()}
    return {
        "model_list": [{"model_name": name, "litellm_params": params} for name, params in models.items()],
        "general_settings": {"master_key": key},
        "litellm_settings": {"telemetry": False, "num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


def _start(config: Path, port: int, log: Path, home: Path) -> subprocess.Popen[bytes]:
    environment = {"PATH": os.defpath, "HOME": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # asks nobody else
    command = [str(Path(sys.executable).parent / "litellm"), "--config", str(config), "--host", "127.0.0.1"]
    with log.open("wb") as output:
        return subprocess.Popen([*command, "--port", str(port)], env=environment, stdout=output, stderr=output)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the proxy answers; it takes its time to import what it needs."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with requests.get(url, timeout=5) as answer:
                if answer.ok:
                    return
        except requests.RequestException:
            pass
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"the proxy did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
        time.sleep(0.2)
