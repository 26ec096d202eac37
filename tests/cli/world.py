"""The command as a user starts it, in a process of its own, and a provider on the loopback interface."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gotato_cli._interrupts import Interrupts
from gotato_cli._main import run

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path.parents[1] for path in ROOT.glob("*/gotato_*/__init__.py"))
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
UNAUTHORIZED = (
    b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 38\r\nConnection: close\r\n\r\n"
    b'{"error": {"message": "no such key!"}}'
)


class Gotato:
    """Starts `python -m gotato_cli` from a bare clone: nothing installed, nothing configured, warnings are errors."""

    def __init__(self) -> None:
        plain = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_API_KEY") and name != "GOTATO_CONFIG"
        }
        self.environment = plain | {
            "PYTHONPATH": os.pathsep.join(map(str, SOURCES)),
            "PYTHONUTF8": "1",
            "XDG_CONFIG_HOME": os.devnull,
            "COLUMNS": "80",
        }

    def start(
        self,
        *argv: str,
        env: dict[str, str] | None = None,
        python: Sequence[str] = ("-m", "gotato_cli"),
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Starts the command with pipes for its streams; `python` is what of Python's own arguments stands before it.

        It begins with SIGINT ignored. What Python does with one before the first line of ours runs, while it starts
        itself and imports `site`, is no one's to change: it dies with a traceback. So a test that sends one then would
        test Python. Ignored until `main` takes it over, an early SIGINT is lost, and every later one is ours.
        """
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-W", "error", *python, *argv]
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return subprocess.Popen(
                command, env=self.environment | (env or {}), text=True, encoding="utf-8", **(pipes | options)
            )
        finally:
            signal.signal(signal.SIGINT, before)

    def __call__(
        self, *argv: str, input: str | None = None, env: dict[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*argv, env=env, **options)
        out, err = process.communicate(input, timeout=60)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def inside(self, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the command in this process: a tenth of the time, for what has nothing to do with processes."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        before = dict(os.environ)
        _become(self.environment | dict(env or {}))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(argv, Interrupts())
        finally:
            _become(before)
        printed, said = (stream.detach().getvalue().decode() for stream in (out, err))
        return subprocess.CompletedProcess(argv, code, printed, said)


def _become(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


def sse(*deltas: Mapping[str, object], finish: str = "") -> bytes:
    """Chunks of a chat completion, the end too if `finish` says why."""
    chunks: list[object] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    lines = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    return lines + (b"data: [DONE]\n\n" if finish else b"")


class Provider:
    """Answers each connection with the next of the replies, the last one again and again.

    A reply is sent as it is, then the connection is closed; one that ends in `STALL` is kept open until the client
    leaves.
    """

    STALL = b"<stall>"

    def __init__(self, replies: Sequence[bytes]) -> None:
        self.requests: list[bytes] = []
        self._replies = list(replies)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed: the test is over
                return
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536) or b"\r\n\r\n"
        head, _, body = received.partition(b"\r\n\r\n")
        length = next((int(x.split(b":")[1]) for x in head.splitlines() if x.lower().startswith(b"content-length")), 0)
        while len(body) < length:
            body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        connection.sendall(reply.removesuffix(self.STALL))
        if reply.endswith(self.STALL):
            connection.recv(1)

    def close(self) -> None:
        """Ends the thread."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
