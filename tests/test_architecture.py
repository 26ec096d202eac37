"""The architecture, asserted from the source: who may import whom, and how big a part may grow.

Every rule is a small function from source to a list of breaches, tried here on a few lines that break it as well.
"""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
KERNEL = "gotato_py"
FOLDERS = {
    KERNEL: "gotato_py",
    "gotato_gateway": "gateway",
    "gotato_session": "session",
    "gotato_modelctx": "modelctx",
    "gotato_toolregistry": "toolregistry",
    "gotato_testkit": "testkit",
    "gotato_cli": "cli",
}
MAY_IMPORT = {
    KERNEL: set[str](),
    "gotato_gateway": {KERNEL},
    "gotato_session": {KERNEL},
    "gotato_modelctx": {KERNEL, "gotato_session"},
    "gotato_toolregistry": {KERNEL},
    "gotato_testkit": set(FOLDERS) - {"gotato_cli"},
    "gotato_cli": set(FOLDERS),
}
DECLARED = {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in CONFIG["project"]["dependencies"]}
EXTRAS = {
    re.split(r"[^\w-]", each)[0].replace("-", "_")
    for name, needed in CONFIG["project"]["optional-dependencies"].items()
    for each in needed
    if name not in {"test", "dev", "sdk", "litellm"}  # what tests alone need
}
HYPOTHESIS_MODULE = re.compile(r"gotato_testkit\.(.+\.)?_?(strategies|contract\w*)(\..+)?")
MAX_FILE, MAX_FUNCTION = 300, 50
DYNAMIC = "(dynamic)"

each_package = pytest.mark.parametrize("package", FOLDERS)


@dataclass(frozen=True)
class Import:
    """One name that one module takes from another; `name` is empty for a plain `import target`."""

    module: str
    target: str
    name: str = ""
    line: int = 0
    in_function: bool = False
    for_types: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.target} {self.name}".rstrip()


def placed(node: ast.AST, in_function: bool = False, for_types: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Every node under `node`, with whether it stands in a function, and whether under `if TYPE_CHECKING:`."""
    yield node, in_function, for_types
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    checked = isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    guarded = node.body if isinstance(node, ast.If) and checked else []
    for child in ast.iter_child_nodes(node):
        yield from placed(child, inside, for_types or child in guarded)


def taken(node: ast.AST, module: str, *, is_package: bool) -> list[tuple[str, str]]:
    """What one node imports, as (target, name): relative imports made absolute, `import_module("a")` counted too."""
    if isinstance(node, ast.Import):
        return [(each.name, "") for each in node.names]
    if isinstance(node, ast.ImportFrom):
        parts = module.split(".")
        base = parts[: len(parts) - node.level + is_package] if node.level else []
        return [(".".join([*base, *filter(None, [node.module])]), each.name) for each in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {"import_module", "__import__"}:
        return [(str(each.value), DYNAMIC) for each in node.args[:1] if isinstance(each, ast.Constant)]
    return []


def imports_of(source: str, module: str, *, is_package: bool = False) -> list[Import]:
    """Every import that the source of `module` makes, and where each stands."""
    return [
        Import(module, target, name, getattr(node, "lineno", 0), in_function, for_types)
        for node, in_function, for_types in placed(ast.parse(source))
        for target, name in taken(node, module, is_package=is_package)
    ]


def layer_breach(found: Import, public: frozenset[str]) -> str:
    """Why one import crosses a layer, or nothing; `public` is the kernel's public names."""
    owner, top = found.module.partition(".")[0], found.target.partition(".")[0]
    if top == owner or top in sys.stdlib_module_names:
        return ""
    if top in FOLDERS:
        return door_breach(owner, top, found, public)
    if top == "hypothesis":
        allowed = HYPOTHESIS_MODULE.fullmatch(found.module) is not None
        return "" if allowed else "Hypothesis belongs to the testkit's strategies and contract modules"
    if top == "pytest":
        return "" if found.module == "gotato_testkit.fixtures" else "pytest belongs to the testkit's fixtures"
    if owner == KERNEL:
        private = found.module.rpartition(".")[2].startswith("_")
        allowed = top == "typing_extensions" and found.for_types and private
        return "" if allowed else "the kernel imports the standard library only"
    if top in EXTRAS and found.name == DYNAMIC:  # what an extra brings is imported when it is used
        return ""
    return "" if top in DECLARED else "no declared dependency"


def door_breach(owner: str, top: str, found: Import, public: frozenset[str]) -> str:
    """Why an import of one of our packages by another is not allowed, or nothing."""
    if top not in MAY_IMPORT[owner]:
        return f"{owner} may not import {top}"
    if not found.name:
        return f"write `from {found.target} import …`, so that the names taken can be seen"
    if any(part.startswith("_") for part in found.target.split(".")):
        return "a private module of another package"
    if top == KERNEL and (found.target != KERNEL or found.name not in public):
        return "the kernel is imported through its door, and by its public names"
    if found.name.startswith("_") and found.name != "__version__":
        return "a private name of another package"
    return ""


def import_cycle(modules: Mapping[str, list[Import]]) -> list[str]:
    """One circle of imports among `modules`, those for type checkers included, or nothing."""
    graph: dict[str, set[str]] = {}
    for module, found in modules.items():
        named = ((each.target, f"{each.target}.{each.name}") for each in found)
        targets = {longer if longer in modules else target for target, longer in named}
        graph[module] = {target for target in targets if target in modules and target != module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def oversized(source: str) -> list[str]:
    """What in the source is longer than a part may grow: the file, or a function in it."""
    lines = len(source.splitlines())
    found = [f"the file: {lines} lines"] if lines > MAX_FILE else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                found.append(f"{node.name}: {length} lines")
    return found


def silent_tests(source: str) -> Iterator[str]:
    """The test functions of the source that do not state a behaviour in a docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test") and not ast.get_docstring(node):
            yield f"{node.name} at line {node.lineno}"


@cache
def sources(package: str) -> dict[str, tuple[Path, str]]:
    """The modules of a package by dotted name, each with its path and source."""
    root = ROOT / FOLDERS[package]
    found: dict[str, tuple[Path, str]] = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if path.name == "__init__.py" else parts)] = (path, path.read_text("utf-8"))
    assert found, f"{root / package} holds no module"
    return found


@cache
def package_imports(package: str) -> dict[str, list[Import]]:
    """The imports of every module of a package."""
    return {
        module: imports_of(source, module, is_package=path.name == "__init__.py")
        for module, (path, source) in sources(package).items()
    }


# The project


@each_package
def test_imports_go_inward(package: str) -> None:
    """A package imports the layers it may, through their doors, and only dependencies that are declared."""
    public = frozenset(importlib.import_module(KERNEL).__all__) | {"__version__"}
    found = (each for imports in package_imports(package).values() for each in imports)
    breaches = [f"{each}: {why}" for each in found if (why := layer_breach(each, public))]
    assert breaches == []


def test_one_kernel_module_may_name_typing_extensions() -> None:
    """At most one kernel module names `typing_extensions`, however guarded."""
    imports = package_imports(KERNEL)
    naming = [module for module in imports if any(each.target == "typing_extensions" for each in imports[module])]
    assert len(naming) <= 1, naming


@each_package
def test_imports_form_no_circle(package: str) -> None:
    """No module of a package reaches itself through imports, those under `TYPE_CHECKING` included."""
    assert import_cycle(package_imports(package)) == []


@each_package
def test_imports_stand_at_the_top(package: str) -> None:
    """No function imports anything: what a module needs can be read at its top."""
    imports = package_imports(package)
    inside = [each for found in imports.values() for each in found if each.in_function and each.name != DYNAMIC]
    assert [str(each) for each in inside] == []


@each_package
def test_parts_stay_small(package: str) -> None:
    """No file is longer than 300 lines and no function longer than 50."""
    found = [f"{module}, {each}" for module, (_, source) in sources(package).items() for each in oversized(source)]
    assert found == []


@each_package
def test_types_ship(package: str) -> None:
    """Each package carries its own `py.typed`, which covers one top-level package only."""
    assert (ROOT / FOLDERS[package] / package / "py.typed").is_file()


def test_every_package_is_known() -> None:
    """A folder that holds a package is listed above, so every rule here applies to it."""
    present = {path.parent.name: path.parent.parent.name for path in ROOT.glob("*/gotato_*/__init__.py")}
    assert present == FOLDERS


def test_the_path_lists_agree() -> None:
    """The wheel and every tool are told of every package, and of nothing else."""
    tool, folders = CONFIG["tool"], list(FOLDERS.values())
    assert tool["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"{FOLDERS[each]}/{each}" for each in FOLDERS]
    assert tool["coverage"]["run"]["source_pkgs"] == list(FOLDERS)
    assert tool["mypy"]["mypy_path"].split(":") == folders
    assert tool["pyright"]["extraPaths"] == folders
    assert tool["pyright"]["include"] == [*folders, "tests", "examples", "benchmarks"]
    assert tool["pytest"]["ini_options"]["pythonpath"] == tool["ruff"]["src"] == folders


def test_every_test_states_its_behaviour() -> None:
    """Every test function under tests/ has a docstring."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    silent = [f"{path.name}: {each}" for path in files for each in silent_tests(path.read_text("utf-8"))]
    assert silent == []


def test_importing_the_kernel_is_free_of_side_effects() -> None:
    """`import gotato_py` loads no third-party module, starts no thread and prints nothing."""
    program = f"""
import sys, threading
sys.path.insert(0, {str(ROOT / FOLDERS[KERNEL])!r})
before = set(sys.modules)
import gotato_py
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
foreign = sorted(new - sys.stdlib_module_names - {{"gotato_py"}})
assert not foreign, f"loaded {{foreign}}"
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
"""
    command = [sys.executable, "-I", "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# The rules themselves


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gotato_py.a", "import requests"),
        ("gotato_py.a", "import typing_extensions"),
        ("gotato_py._a", "import typing_extensions"),
        ("gotato_py.a", "if TYPE_CHECKING:\n    from typing_extensions import TypeVar"),
        ("gotato_py._a", "if TYPE_CHECKING:\n    pass\nelse:\n    from typing_extensions import TypeVar"),
        ("gotato_py.a", "import_module('requests')"),
        ("gotato_py.a", "from gotato_session import Session"),
        ("gotato_gateway.a", "from gotato_py._loop import run"),
        ("gotato_gateway.a", "from gotato_py.agent import Agent"),
        ("gotato_gateway.a", "from gotato_py import _loop"),
        ("gotato_gateway.a", "from gotato_py import Agent, Secret"),
        ("gotato_gateway.a", "from gotato_py import *"),
        ("gotato_gateway.a", "import gotato_py"),
        ("gotato_gateway.a", "from gotato_session import Session"),
        ("gotato_gateway.a", "import numpy"),
        ("gotato_gateway.a", "import genai_prices"),
        ("gotato_gateway.a", "import session"),
        ("gotato_session.a", "from gotato_modelctx import compact"),
        ("gotato_toolregistry.a", "from gotato_testkit import call"),
        ("gotato_testkit.a", "from gotato_cli import main"),
        ("gotato_testkit.a", "import hypothesis"),
        ("gotato_testkit.contracts.model", "import pytest"),
        ("gotato_testkit.a", "from gotato_session import _journal"),
        ("gotato_cli.a", "from gotato_gateway._http import post"),
        ("gotato_session.strategies", "import hypothesis"),
    ],
)
def test_a_crossed_layer_is_seen(module: str, source: str) -> None:
    """An import that crosses a layer is reported, whichever way it is written."""
    assert [found for found in imports_of(source, module) if layer_breach(found, frozenset({"Agent"}))]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("gotato_py.a", "import os.path\nfrom . import b\nfrom .b import c\nfrom gotato_py.d import e"),
        ("gotato_py._a", "if TYPE_CHECKING:\n    from typing_extensions import TypeVar"),
        ("gotato_gateway.a", "import requests\nfrom requests.adapters import HTTPAdapter\nfrom gotato_py import Agent"),
        ("gotato_modelctx.a", "from gotato_session import Session"),
        ("gotato_gateway.a", "def f():\n    import_module('genai_prices')"),
        ("gotato_testkit.fixtures", "import pytest"),
        ("gotato_testkit.strategies", "from hypothesis import strategies"),
        ("gotato_testkit._contracts.store", "import hypothesis"),
        ("gotato_cli.a", "from gotato_testkit import DemoModel\nfrom gotato_py import Agent"),
    ],
)
def test_an_inward_import_passes(module: str, source: str) -> None:
    """Imports of the standard library, of inner layers and of declared dependencies are not reported."""
    assert [found for found in imports_of(source, module) if layer_breach(found, frozenset({"Agent"}))] == []


@pytest.mark.parametrize(
    ("module", "is_package", "source", "expected"),
    [
        ("p.a", False, "from .b import c", ("p.b", "c")),
        ("p.a", False, "from . import b", ("p", "b")),
        ("p", True, "from .b import c", ("p.b", "c")),
        ("p.s", True, "from ..b import c", ("p.b", "c")),
        ("p.s.a", False, "from ..b import c", ("p.b", "c")),
    ],
)
def test_relative_imports_are_resolved(module: str, is_package: bool, source: str, expected: tuple[str, str]) -> None:
    """A relative import is read as the absolute one it stands for."""
    (found,) = imports_of(source, module, is_package=is_package)
    assert (found.target, found.name) == expected


@pytest.mark.parametrize(
    "source", ["def f():\n    import os", "class A:\n    def f(self):\n        from os import path"]
)
def test_an_import_in_a_function_is_seen(source: str) -> None:
    """An import below a `def` is marked as such, and one after it is not."""
    assert [found.in_function for found in imports_of(f"{source}\nimport re", "p.a")] == [True, False]


@pytest.mark.parametrize(
    "b",
    ["from .a import x", "from . import a", "import p.a", "if TYPE_CHECKING:\n    from .a import x", "from . import x"],
)
def test_a_circle_is_seen(b: str) -> None:
    """A circle is found through any form of import, and through the package's own door."""
    modules = {"p": imports_of("from .b import x", "p", is_package=True)}
    modules |= {"p.a": imports_of("from .b import x", "p.a"), "p.b": imports_of(b, "p.b")}
    assert "p.b" in import_cycle(modules)


def test_a_straight_line_is_no_circle() -> None:
    """A package whose imports go one way passes."""
    modules = {"p": imports_of("from .b import x", "p", is_package=True), "p.a": imports_of("import os", "p.a")}
    assert import_cycle(modules | {"p.b": imports_of("from .a import x", "p.b")}) == []


def test_an_overgrown_part_is_seen() -> None:
    """A file of 301 lines and a function of 51 are reported; 300 and 50 are not."""
    function = "def f():\n" + "    x = 1\n" * 49
    assert oversized(function + "y = 1\n" * 250) == []
    assert oversized(function + "    z = 1\n" + "y = 1\n" * 250) == ["the file: 301 lines", "f: 51 lines"]


def test_a_silent_test_is_seen() -> None:
    """A test without a docstring is reported, in a class too."""
    source = "def test_a():\n    'It works.'\nclass TestB:\n    def test_b(self): pass"
    assert list(silent_tests(source)) == ["test_b at line 4"]
