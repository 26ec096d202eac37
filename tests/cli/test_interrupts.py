"""Ctrl-C: one SIGINT at any moment, or many, gives code 130, whole lines and no traceback."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from gotato_cli._interrupts import Interrupts
from gotato_py import Scope
from gotato_testkit import ManualClock

from ..effort import by_profile
from .world import SOURCES, STREAM, Gotato, Provider, sse

PROMPT = "What is the weather in Oslo, Rome and Lima, and what is 17 * 23?"
MOMENTS = by_profile(dev=8, ci=25, nightly=100)
MakeProvider = Callable[..., Provider]


def interrupted(process: subprocess.Popen[str], *pauses: float) -> tuple[int, str, str]:
    """Sends a SIGINT after each of the pauses, and returns code, stdout and stderr."""
    for pause in pauses:
        time.sleep(pause)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout as out, process.stderr as err:  # not `communicate`, which misses what was read ahead
        printed = out.read(), err.read()
    return process.wait(60), *printed


def test_any_moment_will_do(gotato: Gotato) -> None:
    """A SIGINT from the first line of ours to the last: 130, or 0 if all was done; what is printed is whole."""
    began = time.monotonic()
    gotato("run", "--json", PROMPT)
    length = time.monotonic() - began
    chance = random.Random(20240611)
    for moment in range(MOMENTS):
        flags = [["--json"], ["--events"], []][moment % 3]
        delay = chance.uniform(0, 1.1 * length)
        code, out, err = interrupted(gotato.start("run", *flags, PROMPT), delay, *[0.01] * (moment % 2))
        where = f"{flags} after {delay:.3f} of {length:.3f} s: {code} {out!r} {err!r}"
        assert code in {0, 130}, where
        assert "Traceback" not in err, where
        assert "Exception ignored" not in err, where
        assert out == "" or out.endswith("\n"), where
        lines = [json.loads(line) for line in out.splitlines()] if flags else []
        assert len(lines) <= 1 or flags == ["--events"], where
        if lines and "status" in lines[-1]:
            assert lines[-1]["status"] in {"completed", "cancelled"}, where


AT_ONE_MOMENT = """
import sys
from gotato_cli._interrupts import Interrupts
interrupts = Interrupts(now=lambda: 0.0)
interrupts.install()
from gotato_cli._main import run
sys.exit(interrupts.exit_code(run(sys.argv[1:], interrupts)))
"""
"""The command, for which no time passes between two SIGINTs: a second of it between them would be insisting."""


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_run_that_hangs_ends_cancelled(gotato: Gotato, provider: MakeProvider, count: int) -> None:
    """While the provider is silent, SIGINT gives the whole result as `cancelled`, however often it is sent."""
    there = provider(STREAM + sse({"content": "Hello "}) + Provider.STALL)
    argv = ["run", "--events", "--model", "openai:m", "--base-url", there.url, "Hi"]
    process = gotato.start(*argv, python=["-m", "gotato_cli"] if count == 1 else ["-c", AT_ONE_MOMENT])
    assert process.stdout is not None
    seen = ""
    while "message_update" not in seen:
        seen = process.stdout.readline()
    code, out, err = interrupted(process, *[0.01] * count)
    result = json.loads(out.splitlines()[-1])
    assert (code, result["kind"], result["status"]) == (130, "run_result", "cancelled")
    assert result["text"].strip() == "Hello"
    assert err == "gotato: interrupted\n"


def test_text_that_was_cut_ends_its_line(gotato: Gotato, provider: MakeProvider) -> None:
    """Text for people is closed with a line break when the run is interrupted in the middle of it."""
    there = provider(STREAM + sse({"content": "Hello wor"}) + Provider.STALL)
    process = gotato.start("run", "--model", "openai:m", "--base-url", there.url, "Hi")
    assert process.stdout is not None
    assert process.stdout.read(9) == "Hello wor"
    assert interrupted(process, 0.0) == (130, "\n", "gotato: interrupted\n")


def test_waiting_for_stdin_can_be_interrupted(gotato: Gotato) -> None:
    """A prompt that never comes does not hold the command."""
    process = gotato.start("run", "-", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("half a prompt")
    process.stdin.flush()
    while process.poll() is None:  # until the handler is there, SIGINT is ignored: see Gotato.start
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert interrupted(process) == (130, "", "")
    process.stdin.close()


HEAD = """
import os, signal, time
from gotato_cli._interrupts import Interrupts
from gotato_cli._output import Output
interrupts = Interrupts()
interrupts.install()
output = Output(interrupts)
"""


def start(program: str, *, unbuffered: str = "") -> subprocess.Popen[str]:
    """Starts a few lines of Python that hold an `Interrupts`, and waits for the word "ready" on stdout."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "PYTHONUNBUFFERED": unbuffered}
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + program], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_insisting_ends_even_what_hangs() -> None:
    """A SIGINT a second after the first leaves at once, with the open line closed; one in between changes nothing."""
    process = start("output.line('ready')\noutput.text('half a li')\nwhile True: time.sleep(9)")
    assert process.stdout is not None
    assert process.stdout.read(9) == "half a li"
    began = time.monotonic()
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    assert time.monotonic() - began >= 1.0
    assert interrupted(process) == (130, "\n", "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_insisting_waits_for_the_end_of_a_line(unbuffered: str) -> None:
    """A line that is being written is written whole before the process leaves, also into a slow pipe."""
    program = "signal.signal(signal.SIGINT, lambda *its: (interrupts.note(*its), os.write(2, b'.')))\n"
    program += "output.line('ready')\noutput.line('x' * 1_000_000)\nwhile True: time.sleep(9)"
    process = start(program, unbuffered=unbuffered)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(1) == "x"  # the rest is more than a pipe holds
    for pause in (0.0, 1.0):
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read(1) == "."  # it has been noted
    code, out, err = interrupted(process)
    assert (code, len(out), out[-1], err) == (130, 1_000_000, "\n", "")


def test_an_early_interrupt_cancels_what_comes_later() -> None:
    """A SIGINT before there is a run cancels the run as soon as it is there."""
    interrupts = Interrupts()
    interrupts.note()
    scope = Scope()
    interrupts.watch(scope)
    assert (scope.cancelled, scope.reason) == (True, "interrupted")


def test_an_interrupt_cancels_the_run_that_is_watched() -> None:
    """The handler cancels the scope and raises nothing."""
    interrupts, scope = Interrupts(), Scope()
    interrupts.watch(scope)
    interrupts.note()
    assert scope.cancelled


def test_only_insisting_leaves() -> None:
    """Interrupts within a second of the first do nothing more; a later one leaves, but not in the middle of a line."""
    clock, left = ManualClock(), list[object]()
    interrupts = Interrupts(now=clock.monotonic, leave=left.append)
    interrupts.before_leaving = lambda: left.append("line closed")
    for _ in range(3):
        interrupts.note()
        clock.advance(0.4)
    assert left == []
    interrupts.write(interrupts.note)
    assert left == ["line closed", 130]
    interrupts.note()
    assert left == ["line closed", 130] * 2

    def writing() -> None:
        interrupts.note()
        assert len(left) == 4

    interrupts.write(writing)
    assert len(left) == 6


def test_the_code_tells_of_an_interrupt() -> None:
    """The exit code is 130 if there was a SIGINT, and the run's own otherwise; from then on SIGINT is held back."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    try:
        assert Interrupts().exit_code(3) == 3
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())
        noted = Interrupts()
        noted.note()
        assert noted.exit_code(0) == 130
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
