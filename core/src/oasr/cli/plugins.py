"""`oasr plugins`: what is installed, what it offers, and why something does not work.

`oasr plugins --json` prints one object, whose keys are stable:

    {"warnings": ["..."],
     "plugins": [{"name", "distribution", "version", "status", "reason", "note", "module", "location",
                  "import_seconds", "traceback",
                  "components": [{"kind", "name", "usable_as", "summary", "target", "config", "aliases",
                                  "capabilities", "needs", "requires", "stability"}]}]}

`status` is ok, disabled, incompatible, conflict, unavailable or broken. `usable_as` is what to write in a
configuration, null when a required module is absent. Everything else is text, a number or a list of text.
"""

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from oasr.cli.table import print_table
from oasr.errors import UnknownComponentError
from oasr.plugin import ComponentSpec, Kind
from oasr.registry import PluginRecord, Registry, Status
from oasr.registry.hints import did_you_mean

_HEADER = ("plugin", "distribution", "version", "status", "components or reason")
_STYLES = {Status.OK: "green", Status.UNAVAILABLE: "yellow", Status.DISABLED: "dim"}
_SLOW_SECONDS = 0.5

app = typer.Typer(add_completion=False)


@app.callback(invoke_without_command=True)
def plugins(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    kind: Annotated[Kind | None, typer.Option(help="Only plugins with components of this kind.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when a plugin needs repair.")] = False,
) -> None:
    """List the installed plugins and what is wrong with them. `oasr plugins show NAME` tells all about one."""
    if ctx.invoked_subcommand:
        return
    registry = Registry.discover()  # not default_registry, which warns of what is listed here anyway
    rows = [
        (record, [spec for spec in record.specs if kind in (None, spec.kind)])
        for record in registry.records
        if kind is None or any(spec.kind == kind for spec in record.specs)
    ]
    if as_json:
        listing = [_as_json(registry, record, specs) for record, specs in rows]
        typer.echo(json.dumps({"warnings": registry.warnings, "plugins": listing}, indent=2))
    else:
        print_table(_HEADER, [_row(record, specs) for record, specs in rows], _style)
        for warning in registry.warnings:
            typer.echo(f"warning: {warning}", err=True)
    if strict and any(record.status.is_fault for record in registry.records):
        raise typer.Exit(1)


@app.command()
def show(name: Annotated[str, typer.Argument(help="A plugin, its distribution, or one of its components.")]) -> None:
    """Tell all about one plugin, with the traceback when it is broken."""
    registry = Registry.discover()
    found = [record for record in registry.records if record.answers_to(name)] or [
        record for record in registry.records if any(_is_called(spec, record, name) for spec in record.specs)
    ]
    if not found:
        known = {record.name for record in registry.records}
        components = {spec.name for record in registry.records for spec in record.specs}
        raise UnknownComponentError(
            f'No plugin or component named "{name}". Installed plugins: {", ".join(sorted(known))}.'
            f"{did_you_mean(name, known | components)}"
        )
    typer.echo("\n\n".join(_description(registry, record) for record in found))


def _is_called(spec: ComponentSpec, record: PluginRecord, name: str) -> bool:
    word, _, distribution = name.partition("@")
    return word in (spec.name, *spec.aliases) and (not distribution or record.answers_to(distribution))


def _row(record: PluginRecord, specs: list[ComponentSpec]) -> tuple[str, str, str, Status, str]:
    kinds = dict.fromkeys(spec.kind for spec in specs)
    offered = "; ".join(f"{kind} {', '.join(spec.name for spec in specs if spec.kind == kind)}" for kind in kinds)
    remarks = [record.reason or offered, record.note]
    if record.import_seconds > _SLOW_SECONDS:
        remarks.append(f"imported in {record.import_seconds:.1f} s")
    return record.name, record.distribution, record.version, record.status, "; ".join(filter(None, remarks))


def _style(cell: str) -> str:
    return _STYLES.get(cell, "red") if isinstance(cell, Status) else ""


def _as_json(registry: Registry, record: PluginRecord, specs: list[ComponentSpec]) -> dict[str, Any]:
    fields = asdict(record)
    del fields["specs"]
    components = [
        {
            **{key: sorted(value) if isinstance(value, frozenset) else value for key, value in asdict(spec).items()},
            "usable_as": registry.usable_name(spec, record),
        }
        for spec in specs
    ]
    return {**fields, "components": components}


def _description(registry: Registry, record: PluginRecord) -> str:
    facts = {
        "distribution": f"{record.distribution} {record.version}".strip(),
        "status": record.status,
        "reason": record.reason,
        "note": record.note,
        "module": record.module,
        "code": getattr(sys.modules.get(record.module), "__file__", None),
        "metadata": record.location,
        "imported in": f"{record.import_seconds:.3f} s",
    }
    lines = [record.name, *(f"  {key + ':':14}{value}" for key, value in facts.items() if value)]
    for spec in record.specs:
        lines += ["", f"  {spec.kind} {registry.usable_name(spec, record) or spec.name}: {spec.summary}"]
        details = {
            "target": spec.target,
            "config": spec.config,
            "aliases": ", ".join(spec.aliases),
            "capabilities": ", ".join(sorted(spec.capabilities)),
            "needs": ", ".join(sorted(spec.needs)),
            "requires": ", ".join(spec.requires),
            "stability": spec.stability,
        }
        lines += [f"    {key + ':':14}{value}" for key, value in details.items() if value]
    if record.traceback:
        lines += ["", record.traceback.rstrip()]
    return "\n".join(lines)
