"""`gotato run`, as a user meets it: output, exit codes, stdin, and streams that go away."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .world import STREAM, UNAUTHORIZED, Gotato, Provider, sse

PROMPT = "What is the weather in Oslo, and what is 17 * 23?"
ANSWER = "Oslo: 8 °C, sunny. 17 * 23 = 391."
NOTES = """\
→ weather(city="Oslo")
← ok: Oslo: 8 °C, sunny
→ calculate(expression="17 * 23")
← ok: 17 * 23 = 391
"""
HELLO = STREAM + sse({"content": "Hello "}, {"content": "there."}, finish="stop")
LOOP = STREAM + sse(
    {
        "tool_calls": [
            {"index": 0, "id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
        ]
    },
    finish="tool_calls",
)
MakeProvider = Callable[..., Provider]


def only_object(text: str) -> dict[str, Any]:
    """The one JSON object that is all of the text, in one line."""
    assert text.count("\n") == 1
    assert text.endswith("\n")
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


def test_an_answer_is_text_on_stdout(gotato: Gotato) -> None:
    """The answer goes to stdout, the calls and their results to stderr, and the code is 0."""
    done = gotato("run", PROMPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER + "\n", NOTES)


def test_json_is_one_object(gotato: Gotato) -> None:
    """`--json` prints the result as one object and nothing else."""
    done = gotato("run", "--json", PROMPT)
    result = only_object(done.stdout)
    assert list(result) == ["run_id", "status", "text", "usage", "metrics", "error"]
    assert (result["status"], result["text"], result["error"]) == ("completed", ANSWER, None)
    assert result["usage"]["input_tokens"] > 0
    assert (result["metrics"]["turns"], result["metrics"]["tool_calls"]) == (2, 2)
    assert (done.returncode, done.stderr) == (0, "")


def test_events_are_a_line_each(gotato: Gotato) -> None:
    """`--events` prints every event as it comes and the result last, each a line of JSON."""
    done = gotato("run", "--events", PROMPT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [lines[0]["kind"], lines[-2]["kind"], lines[-1]["kind"]] == ["agent_start", "agent_end", "run_result"]
    assert [line["sequence"] for line in lines[:-1]] == list(range(1, len(lines)))
    assert (lines[-1]["status"], lines[-1]["text"]) == ("completed", ANSWER)
    assert "".join(line["text"] for line in lines if line["kind"] == "message_update") == ANSWER
    assert (done.returncode, done.stderr) == (0, "")


def test_the_demo_run_is_the_same_every_time(gotato: Gotato) -> None:
    """The demo model and its tools depend on neither time nor chance."""
    assert {gotato("run", PROMPT).stdout for _ in range(2)} == {ANSWER + "\n"}


def test_the_prompt_can_come_from_stdin(gotato: Gotato) -> None:
    """`-` reads the prompt from stdin, as UTF-8, without the line break at its end."""
    done = gotato("run", "--model", "echo", "-", input="Grüße\nan alle\n")
    assert (done.returncode, done.stdout) == (0, "Grüße\nan alle\n")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run"], "required: prompt"),
        (["run", "a", "b"], "unrecognized arguments"),
        (["run", "--json", "--events", "a"], "not allowed with"),
        (["run", "--jso", "a"], "unrecognized arguments"),
        (["run", "--timeout", "-1", "a"], "no number of seconds"),
        (["run", "--timeout", "nan", "a"], "no number of seconds"),
        (["run", "--timeout", "soon", "a"], "invalid"),
        (["run", ""], "the prompt is empty"),
        (["run", "--model", "gpt", "a"], "PROVIDER:NAME"),
        (["run", "--model", "nobody:x", "a"], "no provider 'nobody'"),
        (["run", "--model", "openai:x", "a"], "OPENAI_API_KEY"),
        (["run", "--base-url", "http://localhost", "a"], "--base-url goes with PROVIDER:NAME"),
        (["dance"], "invalid choice"),
        ([], "required: COMMAND"),
    ],
)
def test_a_mistake_in_the_command_is_code_2(gotato: Gotato, argv: list[str], words: str) -> None:
    """What cannot be carried out says so on stderr, prints nothing to stdout, and exits with 2."""
    done = gotato.inside(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("argv", "words"), [(["run", "-"], "the prompt is empty"), (["dance"], "invalid choice")])
def test_the_code_of_a_mistake_is_that_of_the_process(gotato: Gotato, argv: list[str], words: str) -> None:
    """What is told of a mistake in the command comes out of the process, and so does its code."""
    done = gotato(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_stdin_that_is_no_text_is_code_2(gotato: Gotato, tmp_path: Path) -> None:
    """Bytes that are not UTF-8, and a stdin that is closed, are mistakes in the command."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with (tmp_path / "bytes").open() as file:
        done = gotato("run", "-", stdin=file)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "gotato: stdin is not UTF-8 text\n")


def test_closed_streams_are_no_accident(gotato: Gotato) -> None:
    """A shell may close any of the three: the run works, or the mistake is told, without a traceback."""
    word = " ".join(f'"{each}"' for each in ["$PYTHON", "-m", "gotato_cli"])
    for command, code in {
        f"{word} run 2+2 >&-": 0,
        f"{word} run --json 2+2 >&-": 0,
        f"{word} run 2+2 2>&-": 0,
        f"{word} run - <&-": 2,
    }.items():
        env = gotato.environment | {"PYTHON": sys.executable}
        done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), command


def test_a_deadline_is_code_4(gotato: Gotato) -> None:
    """A run out of time says that, and what to do, and exits with 4."""
    done = gotato("run", "--json", "--timeout", "0", PROMPT)
    result = only_object(done.stdout)
    assert (done.returncode, result["status"], result["error"]["code"]) == (4, "deadline_exceeded", "deadline_exceeded")
    assert done.stderr.count("\n") == 1
    assert "--timeout" in done.stderr


def test_a_configured_model_is_asked(gotato: Gotato, provider: MakeProvider, tmp_path: Path) -> None:
    """`--model NAME` takes a name that is configured; `--base-url` goes before what is written."""
    served = provider(HELLO)
    text = f'[models.mine]\nmodel = "openai:m"\nbase_url = "{served.url}"\n[models.away]\nmodel = "ollama:m"\n'
    (tmp_path / "gotato.toml").write_text(text, "utf-8")
    env = {"GOTATO_CONFIG": str(tmp_path / "gotato.toml")}
    done = gotato("run", "--model", "mine", "hi", env=env)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    done = gotato("run", "--model", "away", "--base-url", served.url, "hi", env=env)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    assert len(served.requests) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[models.other]\nmodel = "ollama:m"', "gotato.toml has no [models.mine]"),
        ('[models.mine]\nmodel = "openai:m"', "OPENAI_API_KEY"),
        ("[models.mine]\nmodle = 3", "unknown key 'modle'"),
        ("= broken", "no TOML"),
    ],
)
def test_a_mistake_in_the_configuration_is_code_2(gotato: Gotato, tmp_path: Path, text: str, words: str) -> None:
    """What is written wrong is told in one line; a file that was named and is not there as well."""
    (tmp_path / "gotato.toml").write_text(text, "utf-8")
    done = gotato.inside("run", "--model", "mine", "hi", env={"GOTATO_CONFIG": str(tmp_path / "gotato.toml")})
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    done = gotato.inside("run", "--model", "mine", "hi", env={"GOTATO_CONFIG": str(tmp_path / "nowhere.toml")})
    assert (done.returncode, "nowhere.toml" in done.stderr) == (2, True)


def test_a_provider_answers_in_a_stream(gotato: Gotato, provider: MakeProvider) -> None:
    """PROVIDER:NAME asks that provider, with the same tools at hand and the instructions in front."""
    there = provider(HELLO)
    done = gotato("run", "--model", "openai:m", "--base-url", there.url, "--instructions", "Be brief.", "Hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello there.\n", "")
    asked = json.loads(there.requests[0].partition(b"\r\n\r\n")[2])
    assert asked["model"] == "m"
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["calculate", "weather"]
    assert [message["content"] for message in asked["messages"]] == ["Be brief.", "Hi"]


def test_text_comes_while_the_answer_is_still_made(gotato: Gotato, provider: MakeProvider) -> None:
    """A piece of text is on stdout as soon as it arrived, in `--events` too."""
    for flags, expected in {(): "Hello", ("--events",): "Hello"}.items():
        there = provider(STREAM + sse({"content": "Hello"}) + Provider.STALL)
        process = gotato.start("run", *flags, "--model", "openai:m", "--base-url", there.url, "Hi")
        assert process.stdout is not None
        seen = ""
        while expected not in seen:
            seen += process.stdout.read(1)
        process.kill()
        process.communicate()


def test_a_failed_run_is_code_1(gotato: Gotato, provider: MakeProvider) -> None:
    """A provider's refusal is one line that says what to do; the code is 1, and no key is shown."""
    there = provider(UNAUTHORIZED)
    key = {"OPENAI_API_KEY": "sk-very-secret-0123456789"}
    done = gotato("run", "--json", "--model", "openai:m", "--base-url", there.url, "Hi", env=key)
    result = only_object(done.stdout)
    assert (done.returncode, result["status"], result["error"]["code"]) == (1, "failed", "authentication_failed")
    assert done.stderr.startswith("gotato: the run failed: ")
    assert done.stderr.count("\n") == 1
    assert "check the key" in done.stderr
    assert "secret" not in done.stdout + done.stderr


def test_a_limited_run_is_code_3(gotato: Gotato, provider: MakeProvider) -> None:
    """A model that repeats one call for ever is stopped by a limit: code 3."""
    there = provider(LOOP)
    done = gotato("run", "--json", "--model", "openai:m", "--base-url", there.url, "Hi")
    assert (done.returncode, only_object(done.stdout)["status"]) == (3, "limited")
    assert "reached a limit" in done.stderr


def test_an_answer_that_was_cut_off_is_taken_back(gotato: Gotato, provider: MakeProvider) -> None:
    """Text of an attempt that failed ends its line, stderr says that it does not count, and the next one follows."""
    there = provider(STREAM + sse({"content": "Hello wor"}), HELLO)
    done = gotato("run", "--model", "openai:m", "--base-url", there.url, "Hi")
    assert (done.returncode, done.stdout) == (0, "Hello wor\nHello there.\n")
    notes = done.stderr.splitlines()
    assert notes[0] == "↺ that answer was cut off and does not count"
    assert notes[1].startswith("… asking the model again in ")


def test_calls_that_make_no_sense_are_shown_as_they_came(gotato: Gotato, provider: MakeProvider) -> None:
    """A call of no tool, or with arguments that are no JSON, is shown with what became of it."""
    calls = [{"name": "dance", "arguments": "{}"}, {"name": "weather", "arguments": '["Oslo"'}]
    deltas = [
        {"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]}
        for index, function in enumerate(calls)
    ]
    there = provider(STREAM + sse(*deltas, finish="tool_calls"), HELLO)
    notes = gotato("run", "--model", "openai:m", "--base-url", there.url, "Hi").stderr.splitlines()
    assert notes[0] == "→ dance()"
    assert notes[1].startswith("← not_run: ")
    assert notes[2].startswith("→ weather(")
    assert notes[3].startswith("← not_run: ")


def test_a_missing_package_is_told(gotato: Gotato, tmp_path: Path) -> None:
    """Without `requests`, a provider is a mistake in the command that names the package; the demo still works."""
    (tmp_path / "requests.py").write_text("raise ModuleNotFoundError('none here', name='requests')")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), gotato.environment["PYTHONPATH"]])}
    done = gotato("run", "--model", "ollama:x", "Hi", env=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gotato: ollama:x needs the package 'requests'; install it, or gotato-py as a whole\n"
    assert gotato("run", "2+2", env=path).stdout == "2+2 = 4.\n"


def test_nobody_left_to_complain_to(gotato: Gotato) -> None:
    """Where stderr cannot be written either, the code still tells."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        assert gotato("run", "", stdout=full, stderr=full).returncode == 2
        assert gotato("run", "2+2", stdout=full, stderr=full).returncode == 1


def test_a_reader_that_leaves_ends_the_run_quietly(gotato: Gotato, provider: MakeProvider) -> None:
    """`| head -1` on a run that goes on: nothing on stderr, the run is cancelled, and the code is that of SIGPIPE."""
    there = provider(STREAM + sse(*[{"content": "x" * 1000}] * 2000) + Provider.STALL)
    process = gotato.start("run", "--events", "--model", "openai:m", "--base-url", there.url, "Hi")
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["kind"] == "agent_start"
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == ("", 141)
    process.stderr.close()


@pytest.mark.parametrize("argv", [["run", PROMPT], ["run", "--json", PROMPT], ["--help"], ["doctor"]])
def test_a_full_disk_is_told_in_one_line(gotato: Gotato, argv: list[str]) -> None:
    """Output that cannot be written is one line on stderr and code 1, whatever was printed."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as file:
        done = gotato(*argv, stdout=file)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("gotato: cannot write: ")
    assert "Traceback" not in done.stderr


def test_a_terminal_without_unicode_gets_what_it_can_show(gotato: Gotato) -> None:
    """Characters that the terminal lacks are escaped, and JSON stays JSON."""
    ascii_only = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    text = gotato("run", PROMPT, env=ascii_only)
    assert (text.returncode, text.stdout) == (0, ANSWER.replace("°", "\\xb0") + "\n")
    assert only_object(gotato("run", "--json", PROMPT, env=ascii_only).stdout)["text"] == ANSWER


def test_what_a_model_says_cannot_command_the_terminal(gotato: Gotato, provider: MakeProvider) -> None:
    """The lines about calls hold no control characters and are of bounded length, whatever the model sends."""
    call = {"name": "weather", "arguments": json.dumps({"city": "\x1b[2J" + "x" * 500})}
    delta = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": call}]}
    there = provider(STREAM + sse(delta, finish="tool_calls"), HELLO)
    done = gotato("run", "--model", "openai:m", "--base-url", there.url, "Hi")
    assert "\x1b" not in done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 120
    assert done.returncode == 0
