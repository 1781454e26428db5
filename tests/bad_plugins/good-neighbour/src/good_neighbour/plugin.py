"""Everything here works, whatever the neighbours do."""

from oasr.plugin import Check, CommandSpec, ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.BATCHING, "neighbourly", "One at a time", "good_neighbour.batching:OneAtATime")]


@hookimpl
def oasr_commands():
    return [CommandSpec("greet", "Greet the neighbours", "good_neighbour.greeting:greet")]


@hookimpl
def oasr_doctor():
    return [Check("ok", "neighbour", "in good health")]
