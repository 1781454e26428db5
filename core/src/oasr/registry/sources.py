"""Where plugins come from: installed entry points, or modules handed over by a test."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from types import ModuleType

from oasr import __version__
from oasr.plugin import ENTRY_POINT_GROUP
from oasr.registry.hints import did_you_mean
from oasr.registry.records import CORE, Entry, normalized

_BUILTIN = "oasr.builtin.plugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Entry):
    """A plugin that was found and not yet imported."""

    imported: ModuleType | None = None
    """Set for modules that need no import."""
    problem: str = ""
    """Why the metadata itself cannot be used."""


def builtin() -> Source:
    """Core's own components."""
    return Source(name="core", distribution=CORE, version=__version__, module=_BUILTIN)


def of_module(module: ModuleType) -> Source:
    """A module that no distribution declares; it is named as if `oasr_x.plugin` came from `oasr-x`."""
    distribution = module.__name__.removesuffix(".plugin").replace("_", "-").replace(".", "-")
    return Source(
        name=distribution.removeprefix("oasr-"),
        distribution=distribution,
        version="",
        module=module.__name__,
        imported=module,
    )


def installed() -> list[Source]:
    """Every entry point of the group, sorted by (distribution, entry); core's own even when nothing is installed.

    Of a distribution found twice the first on the path wins, as it does for `import`, and the note says so: a stale
    dist-info folder otherwise shows up as a plugin nobody can explain.
    """
    found: dict[str, tuple[str, list[Source]]] = {}
    for distribution in distributions():
        entries = _entries(distribution)
        if not entries:
            continue
        first = entries[0]
        key = normalized(first.distribution)
        copy = f"{first.location} (version {first.version})"
        if key not in found:
            found[key] = (copy, entries)
        elif found[key][0] != copy:  # the same folder may stand on the path twice
            note = f"also found in {copy}, which is ignored"
            found[key] = (found[key][0], [replace(entry, note=note) for entry in found[key][1]])
    sources = [entry for _, entries in found.values() for entry in entries]
    if normalized(CORE) not in found:
        sources.append(builtin())
    return sorted(sources, key=lambda source: (source.distribution, source.name))


def _entries(distribution: Distribution) -> list[Source]:
    """The entry points of one distribution. One whose metadata cannot be read is skipped or carries the problem."""
    try:
        # Reading METADATA of all that is installed would cost more than everything else here.
        if ENTRY_POINT_GROUP not in (distribution.read_text("entry_points.txt") or ""):
            return []
        location = str(distribution.locate_file(""))
        name = distribution.metadata["Name"] or "unnamed"
        version = distribution.metadata["Version"] or ""
    except Exception:
        return []  # not a readable distribution: nothing says that it is a plugin
    try:
        return [
            Source(name=entry.name, distribution=name, version=version, module=entry.value, location=location)
            for entry in distribution.entry_points
            if entry.group == ENTRY_POINT_GROUP
        ]
    except Exception as error:
        problem = f"entry_points.txt cannot be parsed: {error}"
        return [Source(name=name, distribution=name, version=version, module="", location=location, problem=problem)]


class Selection:
    """Which plugins the environment allows: OASR_PLUGINS and OASR_PLUGINS_DISABLE."""

    def __init__(self, environ: Mapping[str, str]):
        self._only = _words(environ["OASR_PLUGINS"]) if "OASR_PLUGINS" in environ else None
        self._disable = _words(environ.get("OASR_PLUGINS_DISABLE", ""))

    def refusal(self, source: Source) -> str:
        """Why this plugin must not load; empty when it may. Core always may: without it nothing works."""
        if source.distribution == CORE:
            return ""
        if self._only is not None and not any(map(source.answers_to, self._only)):
            return "not listed in OASR_PLUGINS"
        if any(map(source.answers_to, self._disable)):
            return "listed in OASR_PLUGINS_DISABLE"
        return ""

    def unmatched(self, sources: Iterable[Source]) -> Iterator[str]:
        """One sentence for each word in the environment that names no installed plugin."""
        sources = list(sources)
        known = sorted({word for source in sources for word in (source.name, source.distribution)})
        for variable, words in (("OASR_PLUGINS", self._only or []), ("OASR_PLUGINS_DISABLE", self._disable)):
            for word in words:
                if not any(source.answers_to(word) for source in sources):
                    yield f'{variable} names "{word}", which matches no installed plugin.{did_you_mean(word, known)}'


def _words(value: str) -> list[str]:
    return value.replace(",", " ").split()
