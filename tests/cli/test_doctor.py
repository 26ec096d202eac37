"""`gotato doctor`, `--version` and `--help`."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gotato_cli._doctor import PACKAGES, _installed, examine
from gotato_cli._doctor_models import keys_set
from gotato_gateway import PROVIDERS
from gotato_py import __version__

from .world import Gotato

SECRET = "sk-very-secret-0123456789"


def test_the_doctor_tells_versions_and_tries_a_run(gotato: Gotato) -> None:
    """A sound installation is code 0, with every version and a demo run that works."""
    done = gotato("doctor")
    assert done.returncode == 0
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert {"python", "platform", "gotato-py", *PACKAGES} <= lines.keys()
    assert lines["gotato-py"] == __version__
    assert done.stdout.splitlines()[-2:] == ["keys set    none", "demo run    works"]


def test_the_doctor_shows_names_of_keys_only(gotato: Gotato) -> None:
    """A key that is set is told by its name; its value is nowhere."""
    for flags in ([], ["--json"]):
        done = gotato("doctor", *flags, env={"OPENAI_API_KEY": SECRET, "GROQ_API_KEY": ""})
        assert "OPENAI_API_KEY" in done.stdout
        assert "GROQ_API_KEY" not in done.stdout
        assert SECRET not in done.stdout + done.stderr


def test_the_doctor_speaks_json(gotato: Gotato) -> None:
    """`--json` is one object with what there is to know."""
    report = json.loads(gotato("doctor", "--json").stdout)
    assert (report["ok"], report["keys"], report["demo_run"]) == (True, [], "works")
    assert report["versions"]["requests"]


NOTHING: dict[str, Any] = {"models": {}}
"""What is configured where nothing is."""


def test_the_doctor_knows_every_key_that_connect_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each provider's variables are looked at, those that are read after the usual one as well, and Azure's."""
    names = {name for each in PROVIDERS.values() for name in (each.key_variable, *each.other_variables) if name}
    names.add("AZURE_OPENAI_API_KEY")  # of the hosts below openai.azure.com, which have no name of their own
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert keys_set(NOTHING) == []
    for name in names:
        monkeypatch.setenv(name, SECRET)
    assert set(keys_set(NOTHING)) == names
    assert len(keys_set(NOTHING)) == len(names)


CONFIG = """
[models.fast]
model = "openai:gpt-5"
api_key_env = "FAST_KEY"
[models.house]
model = "ollama:qwen3"
base_url = "http://127.0.0.1:11434/v1"
[models.safe]
failover = ["fast", "house"]
"""


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """A configuration of three models, one of which needs a key."""
    path = tmp_path / "gotato.toml"
    path.write_text(CONFIG, "utf-8")
    return path


def test_the_doctor_shows_what_is_configured(gotato: Gotato, configured: Path) -> None:
    """Each model is shown with where it is and the name of its key's variable, never the key."""
    env = {"GOTATO_CONFIG": str(configured), "FAST_KEY": SECRET}
    done = gotato("doctor", env=env)
    assert done.returncode == 0
    shown = done.stdout.splitlines()
    start = shown.index(f"config      {configured}")
    assert shown[start + 1 : start + 4] == [
        "  fast      openai:gpt-5, key from FAST_KEY",
        "  house     ollama:qwen3 at http://127.0.0.1:11434/v1",
        "  safe      failover: fast, house",
    ]
    assert shown[start + 4] == "keys set    FAST_KEY"
    report = json.loads(gotato("doctor", "--json", env=env).stdout)
    assert report["config"]["path"] == str(configured)
    assert report["config"]["models"]["safe"]["failover"] == ["fast", "house"]
    assert SECRET not in done.stdout + json.dumps(report)


def test_the_doctor_tells_what_is_wrong_with_it(gotato: Gotato, configured: Path) -> None:
    """A key that is not set, and a file that is written wrong, are told, and the code is 1."""
    done = gotato("doctor", env={"GOTATO_CONFIG": str(configured)})
    assert done.returncode == 1
    assert "[models.fast]: the variable FAST_KEY is not set" in done.stdout
    configured.write_text(f'[models.fast]\napi_key = "{SECRET}"', "utf-8")
    done = gotato("doctor", env={"GOTATO_CONFIG": str(configured)})
    assert (done.returncode, SECRET in done.stdout + done.stderr) == (1, False)
    assert "api_key does not belong into a file" in done.stdout
    report = json.loads(gotato("doctor", "--json", env={"GOTATO_CONFIG": str(configured)}).stdout)
    assert (report["ok"], report["config"]["models"]) == (False, {})


def test_the_doctor_works_without_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a package is missing, the rest of the report is still there."""
    monkeypatch.setitem(sys.modules, "gotato_gateway", None)
    report = examine()
    assert (report["keys"], report["config"]) == ([], {"path": None, "problem": "", "models": {}})


def test_a_missing_package_is_seen() -> None:
    """A package that is not installed has no version."""
    assert _installed("no-such-package-anywhere") is None


def test_the_report_is_plain_data() -> None:
    """What the doctor finds can be written as JSON."""
    assert json.loads(json.dumps(examine())) == examine()


def test_version_and_help(gotato: Gotato) -> None:
    """`--version` prints one line, `--help` the commands and the exit codes; both exit with 0."""
    version = gotato("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"gotato {__version__}\n", "")
    for argv in (["--help"], ["run", "--help"]):
        shown = gotato(*argv)
        assert shown.returncode == 0
        assert "130 interrupted by Ctrl-C" in shown.stdout
