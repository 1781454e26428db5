"""What the toys offer. Not an entry point: tests pass this module to `sealed_registry`."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    """The toy components."""
    return [
        ComponentSpec(
            kind=Kind.ARCHITECTURE,
            name="toy",
            summary="A tiny encoder-decoder that spells out its audio in letters",
            target="oasr.testing.toys.model:ToyArchitecture",
            config="oasr.testing.toys.config:ToyConfig",
            capabilities=frozenset({"autoregressive-head", "language-detection"}),
        ),
        ComponentSpec(
            kind=Kind.FRONTEND,
            name="toy-blocks",
            summary="Means and magnitudes of blocks of samples",
            target="oasr.testing.toys.frontend:ToyFrontend",
        ),
        ComponentSpec(
            kind=Kind.DECODER,
            name="toy-greedy",
            summary="The likeliest token",
            target="oasr.testing.toys.decoder:ToyDecoder",
            needs=frozenset({"autoregressive-head"}),
        ),
    ]
