"""The shape of the code: who may import whom, what may be named where, and how long a module may be.

Everything is read from syntax trees; nothing is imported.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from oasr.builtin.plugin import oasr_components
from oasr.plugin import Kind
from oasr.registry.hints import PROVIDERS

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "src" / "oasr"
PACKAGES = sorted(
    path.parent
    for pattern in ("plugins/*", "kernels", "examples/*")
    for path in ROOT.glob(f"{pattern}/src/*/__init__.py")
)
MODULES = sorted(chain.from_iterable(package.rglob("*.py") for package in (CORE, *PACKAGES)))

# Each area of core imports from earlier lines and from itself. Nothing imports what is in no line.
LAYERS = (
    {"errors", "languages", "types", "plugin"},
    {"interfaces"},
    {"registry"},
    {"config"},
    {"ops", "nn", "cache", "audio", "features", "tokenizers", "detectors", "checkpoint", "output"},
    {"scheduler"},
    {"engine"},
    {"cli"},
)
LEAVES = {"builtin", "testing", "__main__"}
SHAPELESS = {"utils", "util", "common", "base", "helpers", "helper", "manager", "managers", "misc"}
MOST_LINES = 400
# What it takes, to the next hundred: whoever needs more moves the line and says why in docs/decisions.
MOST_CORE_LINES = 9500
HINTS = CORE / "registry" / "hints.py"


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in the file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module or ""
            if node.module == "oasr":
                yield from (f"oasr.{alias.name}" for alias in node.names)


def area(path: Path) -> str:
    """The part of core a file belongs to: `cache`, `engine`, ... and "" for the package itself."""
    parts = path.relative_to(CORE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def core_modules(*, kit: bool = True) -> list[Path]:
    return [path for path in MODULES if path.is_relative_to(CORE) and (kit or area(path) != "testing")]


def test_core_imports_no_plugin() -> None:
    assert [(name(path), each) for path in core_modules() for each in imports(path) if each.startswith("oasr_")] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_plugin_imports_no_other_plugin(package: Path) -> None:
    files = [*package.rglob("*.py"), *(package.parents[1] / "tests").rglob("*.py")]
    first_party = {each.name for each in PACKAGES} - {package.name}
    found = [(name(path), each) for path in files for each in imports(path) if each.partition(".")[0] in first_party]
    assert found == []


def test_inside_core_imports_point_one_way() -> None:
    rank = {each: index for index, layer in enumerate(LAYERS) for each in layer}
    backward = []
    for path in core_modules():
        own = area(path)
        assert own in rank or own in LEAVES or own == "", f"{name(path)} is in no layer: add it to LAYERS"
        for module in imports(path):
            top, _, rest = module.partition(".")
            target = rest.partition(".")[0]
            if top != "oasr" or target in ("", "__version__", own) or (own == "__main__" and target == "cli"):
                continue
            lower = rank.get(target, len(LAYERS)) < rank.get(own, len(LAYERS))
            if not lower and not {own, target} <= LAYERS[0]:
                backward.append(f"{name(path)} imports {module}")
    assert backward == []


def test_the_scheduler_needs_no_torch() -> None:
    files = [*(path for path in core_modules() if area(path) == "scheduler"), CORE / "interfaces" / "batching.py"]
    assert [name(path) for path in files if any(each.partition(".")[0] == "torch" for each in imports(path))] == []


def test_only_the_kit_imports_pytest() -> None:
    tools = {"pytest", "hypothesis"}
    files = [path for path in MODULES if not path.is_relative_to(CORE / "testing")]
    assert [name(path) for path in files if tools & {each.partition(".")[0] for each in imports(path)}] == []


def test_core_names_no_first_party_component_outside_the_hint_table() -> None:
    """In literals that are not docstrings, and in identifiers.

    Prose may cite a paper or toolkit. A literal counts when it is a name or alias, or mentions a distribution; an
    identifier counts when one of its words is the name of an architecture, format, model, detector or quantizer.
    Kernels and servers are named after the technology they use, and what core offers itself is core's to name.
    """
    own = {spec.name for spec in oasr_components()}
    names = {
        each for kind, table in PROVIDERS.items() if kind not in (Kind.KERNELS, Kind.SERVER) for each in table
    } - own
    words = {
        each.lower()
        for kind in (Kind.ARCHITECTURE, Kind.FORMAT, Kind.MODEL, Kind.DETECTOR, Kind.QUANTIZER)
        for each in PROVIDERS[kind]
        if each.isalnum()
    } - own
    distributions = {each for table in PROVIDERS.values() for each in table.values()}
    found = []
    for path in core_modules():
        if path == HINTS:
            continue
        for line, literal in literals(path):
            if literal in names or any(re.search(rf"\b{each}\b", literal) for each in distributions):
                found.append(f"{name(path)}:{line}: {literal!r}")
        for line, identifier in identifiers(path):
            if words & set(split_words(identifier)):
                found.append(f"{name(path)}:{line}: {identifier}")
    assert found == []


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Strings that are neither docstrings nor entries of `__all__`, which are identifiers."""
    exported = {
        id(entry)
        for statement in tree(path).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
        for entry in ast.walk(statement.value)
    }
    documented = {
        id(statement.value)
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented | exported:
            yield node.lineno, node.value


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Names that a file defines or uses."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name


def split_words(identifier: str) -> list[str]:
    """`WhisperModel` and `whisper_model` to `whisper`, `model`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_init_file_of_a_plugin_is_a_docstring(package: Path) -> None:
    [statement] = tree(package / "__init__.py").body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Constant)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_is_named_after_its_distribution(package: Path) -> None:
    project = (package.parents[1] / "pyproject.toml").read_text()
    assert f'name = "{package.name.replace("_", "-")}"' in project


def test_modules_are_named_after_what_they_hold() -> None:
    shapeless = [name(path) for path in MODULES for part in path.with_suffix("").parts[-2:] if part in SHAPELESS]
    assert shapeless == []


def test_modules_are_short() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_module_says_what_it_is() -> None:
    assert [name(path) for path in MODULES if not ast.get_docstring(tree(path))] == []


def test_core_is_small() -> None:
    """Lines of code: neither blank, comment nor docstring, and without the kit, which is for tests."""
    lines = {name(path): code_lines(path) for path in core_modules(kit=False)}
    total = sum(lines.values())
    largest = sorted(lines, key=lambda path: -lines[path])[:5]
    assert total <= MOST_CORE_LINES, f"core has {total} lines of code, most of them in {', '.join(largest)}"


def code_lines(path: Path) -> int:
    source = path.read_text(encoding="utf-8")
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in silent]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    prose = {
        line
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return len(lines - prose)


@pytest.mark.parametrize(
    ("source", "lines"),
    [('"""Doc."""\n\n# comment\nx = 1\n', 1), ("def f():\n    'Doc.'\n    return (\n        1\n    )\n", 4), ("\n", 0)],
)
def test_lines_of_code_are_counted_right(tmp_path: Path, source: str, lines: int) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert code_lines(path) == lines


def test_words_of_identifiers_are_told_apart() -> None:
    assert split_words("WhisperModel") == ["whisper", "model"]
    assert split_words("load_whisper_model") == ["load", "whisper", "model"]
    assert "conformer" not in split_words("Conformance")
