"""`oasr check`: hold an installed plugin to the laws of what it offers.

`oasr check --json` prints one object:

    {"distribution": "...", "passed": 17, "failed": 0, "skipped": 1,
     "results": [{"component", "check", "outcome", "reason", "details"}]}

`outcome` is passed, failed or skipped. Exit code 1 when a check failed.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from oasr.checkpoint.sniff import open_checkpoint
from oasr.cli.table import aligned
from oasr.errors import ComponentLoadError, MissingDependencyError, UnknownComponentError
from oasr.registry import PluginRecord, Registry, Status
from oasr.registry.hints import did_you_mean

_OUTCOMES = ("passed", "failed", "skipped")


def command(
    distribution: Annotated[str, typer.Argument(help="An installed distribution or plugin; see oasr plugins.")],
    checkpoint: Annotated[
        Path | None,
        typer.Option(exists=True, help="A small checkpoint to check architectures, formats and tokenizers with."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List what passed, and failures in full.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Hold an installed plugin to the laws of what it offers."""
    record = _find(distribution)
    absent = [module for module in ("pytest", "hypothesis") if find_spec(module) is None]
    if absent:
        raise MissingDependencyError(
            f'oasr check needs {" and ".join(absent)}, which is not installed: pip install "oasr-core[testing]"'
        )
    if checkpoint:
        open_checkpoint(checkpoint, Registry.discover())  # whose refusal would come once for each check
    results = _run(record, checkpoint)
    counts = Counter(result["outcome"] for result in results)
    summary = {outcome: counts[outcome] for outcome in _OUTCOMES}
    if as_json:
        typer.echo(json.dumps({"distribution": record.distribution, **summary, "results": results}, indent=2))
    else:
        _print(results, verbose)
        typer.echo(f"{record.distribution}: " + ", ".join(f"{count} {outcome}" for outcome, count in summary.items()))
    if counts["failed"]:
        raise typer.Exit(1)


def _find(distribution: str) -> PluginRecord:
    records = Registry.discover().records
    found = next((record for record in records if record.answers_to(distribution)), None)
    if found is None:
        names = sorted({record.distribution for record in records})
        raise UnknownComponentError(
            f'No plugin named "{distribution}" is installed. Installed: {", ".join(names)}.'
            f"{did_you_mean(distribution, names)}"
        )
    if found.status in (Status.BROKEN, Status.INCOMPATIBLE, Status.DISABLED):
        raise ComponentLoadError(
            f"{found.distribution} cannot be checked, it is {found.status}: {found.reason}. "
            f"Run: oasr plugins show {found.name}"
        )
    return found


def _run(record: PluginRecord, checkpoint: Path | None) -> list[dict[str, Any]]:
    """Run the suites in a process of their own: pytest and whatever a plugin does stay out of this one."""
    with tempfile.TemporaryDirectory(prefix="oasr-check-") as folder:
        report = Path(folder) / "report.json"
        arguments = [record.distribution, str(report), *([str(checkpoint.resolve())] if checkpoint else [])]
        done = subprocess.run(
            [sys.executable, "-m", "oasr.testing.conformance", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not report.exists():
            last = "\n".join(done.stdout.splitlines()[-15:])
            raise ComponentLoadError(
                f"{record.distribution} ended the process that checked it (exit code {done.returncode}):\n{last}"
            )
        results: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
        return results


def _print(results: list[dict[str, Any]], verbose: bool) -> None:
    """One line for each failure, and one for all checks of a component that passed or were skipped for one reason."""
    rows = []
    for result in results:
        label = result["check"] if verbose or result["outcome"] == "failed" else ""
        rows.append((result["component"], label, result["outcome"], result["reason"]))
    lines = [
        (component, label or f"{count} check{'s'[: count > 1]}", outcome, reason)
        for (component, label, outcome, reason), count in Counter(rows).items()
    ]
    for line in aligned(lines):
        typer.echo(line)
    for result in results:
        if verbose and result["details"]:
            typer.echo(f"\n{result['component']}: {result['check']}\n{result['details']}")
