"""Runs every suite that applies to what an installed distribution offers, without a test file.

`oasr check` starts this module in a process of its own: `python -m oasr.testing.conformance DISTRIBUTION REPORT
[CHECKPOINT]`, which writes a JSON list of results to the file REPORT.
"""

import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from oasr.plugin import Kind
from oasr.registry import PluginRecord, Registry

_SUITES = {
    Kind.ARCHITECTURE: "ArchitectureSuite",
    Kind.FORMAT: "FormatSuite",
    Kind.FRONTEND: "FrontendSuite",
    Kind.TOKENIZER: "TokenizerSuite",
    Kind.DECODER: "DecoderSuite",
    Kind.DETECTOR: "DetectorSuite",
    Kind.BATCHING: "BatchingSuite",
    Kind.MODEL: "ModelSuite",
}
# How a suite gets the checkpoint that was named.
_SAMPLES = {
    Kind.ARCHITECTURE: """
    @pytest.fixture
    def checkpoint(self):
        return Path({path!r})
""",
    Kind.FORMAT: """
    @pytest.fixture
    def checkpoint(self, target):
        if target.match(Path({path!r})) is None:
            pytest.skip("the checkpoint is of another layout")
        return Path({path!r})
""",
    Kind.TOKENIZER: """
    @pytest.fixture
    def files(self, registry):
        return open_checkpoint(Path({path!r}), registry).files
""",
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one component."""

    component: str
    """`plugin NAME`, or kind and name."""
    check: str
    outcome: str
    """`passed`, `failed` or `skipped`."""
    reason: str = ""
    """Of a failure or a skip, in one line."""
    details: str = ""
    """Of a failure: what pytest shows."""


def check(record: PluginRecord, checkpoint: Path | None = None) -> list[CheckResult]:
    """Run the suites for a plugin. `checkpoint` is a sample for architectures and formats, which need one."""
    with tempfile.TemporaryDirectory(prefix="oasr-check-") as folder:
        file = Path(folder) / "test_conformance.py"
        file.write_text(_source(record, checkpoint), encoding="utf-8")
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")  # whoever calls has settings that are not meant for this
        collector = _Collector(_labels(record))
        options = ["-q", "--no-header", "-p", "no:cacheprovider", "--tb=short", "--rootdir", folder]
        pytest.main([*options, "-c", f"{folder}/pytest.ini", str(file)], plugins=[collector])
    unknown = [
        CheckResult(f"{spec.kind} {spec.name}", "all", "skipped", f"there is no suite for {spec.kind} components yet")
        for spec in record.specs
        if spec.kind not in _SUITES
    ]
    return collector.results + unknown


class _Collector:
    """Listens to pytest."""

    def __init__(self, labels: dict[str, str]):
        self.results: list[CheckResult] = []
        self._labels = labels

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        _, group, name = report.nodeid.split("::")
        name = name.removeprefix("test_").replace("_", " ")
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._add(group, name, "skipped", reason.removeprefix("Skipped: "))
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._add(group, name, "failed", crash.message if crash else report.longreprtext, report.longreprtext)
        else:
            self._add(group, name, "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.results.append(CheckResult("plugin", "collection", "failed", _line(report.longreprtext)))

    def _add(self, group: str, name: str, outcome: str, reason: str = "", details: str = "") -> None:
        self.results.append(CheckResult(self._labels[group], name, outcome, _line(reason), details))


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def _classes(record: PluginRecord) -> list[tuple[str, str, str]]:
    """Class name, suite and what it is called in the report, of each component."""
    components = [spec for spec in record.specs if spec.kind in _SUITES]
    return [(f"Test{index}", _SUITES[spec.kind], f"{spec.kind} {spec.name}") for index, spec in enumerate(components)]


def _labels(record: PluginRecord) -> dict[str, str]:
    return {"TestPlugin": f"plugin {record.name}", **{name: label for name, _, label in _classes(record)}}


def _source(record: PluginRecord, checkpoint: Path | None) -> str:
    """A test file as an author would write it."""
    lines = [
        "from pathlib import Path",
        "import pytest",
        "from oasr.checkpoint.sniff import open_checkpoint",
        "from oasr.testing import *",
        f"class TestPlugin(PluginSuite):\n    plugin = {record.module!r}",
    ]
    for name, suite, label in _classes(record):
        kind, _, component = label.partition(" ")
        lines.append(f"class {name}({suite}):\n    component = {f'{component}@{record.distribution}'!r}")
        if checkpoint is not None and kind in _SAMPLES:
            lines.append(_SAMPLES[Kind(kind)].format(path=str(checkpoint)))
    return "\n".join(lines) + "\n"


def main(distribution: str, report: str, checkpoint: str = "") -> None:
    """Write the results for an installed plugin to a file."""
    record = next(record for record in Registry.discover().records if record.answers_to(distribution))
    results = check(record, Path(checkpoint) if checkpoint else None)
    Path(report).write_text(json.dumps([asdict(result) for result in results]), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
