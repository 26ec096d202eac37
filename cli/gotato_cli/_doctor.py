"""`gotato doctor`: what is installed and configured, and whether it works. Shows the names of keys, never a value."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gotato_py import Agent, __version__
from gotato_testkit import DemoModel

from ._doctor_models import configuration, keys_set, lines, sound
from ._output import Output
from ._tools import DEMO_TOOLS

PACKAGES = ("requests", "urllib3", "jsonschema")
_PROMPT = "What is the weather in Oslo, and what is 17 * 23?"
_ANSWER = "Oslo: 8 °C, sunny. 17 * 23 = 391."


def doctor_command(output: Output, *, as_json: bool) -> int:
    """Prints the report; 0 if everything that is needed is there, what is configured can be used and the demo
    run works, else 1."""
    report = examine()
    if as_json:
        output.json_line(report)
    else:
        for name, found in report["versions"].items():
            output.line(f"{name:<12}{found or 'missing: pip install ' + name}")
        for name, found in lines(report["config"]):
            output.line(f"{name:<12}{'' if len(name) < 12 else ' '}{found}")
        output.line(f"{'keys set':<12}{', '.join(report['keys']) or 'none'}")
        output.line(f"{'demo run':<12}{report['demo_run']}")
    return 0 if report["ok"] else 1


def examine() -> dict[str, Any]:
    """What there is to report, as plain JSON types."""
    versions: dict[str, str | None] = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "gotato-py": __version__,
        **{name: _installed(name) for name in PACKAGES},
    }
    demo, config = _demo_run(), configuration()
    return {
        "ok": demo == "works" and None not in versions.values() and sound(config),
        "versions": versions,
        "config": config,
        "keys": keys_set(config),
        "demo_run": demo,
    }


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _demo_run() -> str:
    result = Agent(DemoModel(), tools=DEMO_TOOLS).run(_PROMPT, check=False)
    return "works" if result.text == _ANSWER else f"fails: {result.status.value}: {result.error or result.text}"
