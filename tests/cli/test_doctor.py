"""`gotato doctor`, `--version` and `--help`."""

import json

from gotato_cli._doctor import KEYS, PACKAGES, _installed, examine
from gotato_gateway._providers import PROVIDERS
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


def test_the_doctor_knows_every_key_that_connect_reads() -> None:
    """Each provider's variable is among those that are looked for."""
    assert {provider.key_variable for provider in PROVIDERS.values()} - {""} <= set(KEYS)


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
