"""Requires a module that nobody has; another component of it works."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components():
    return [
        ComponentSpec(
            Kind.DECODER,
            "needs-absent",
            "Sabotaged",
            "bad_absent_requirement.decoder:Decoder",
            requires=("module_that_nobody_has",),
        ),
        ComponentSpec(Kind.DECODER, "needs-nothing", "Works", "bad_absent_requirement.decoder:Decoder"),
    ]
