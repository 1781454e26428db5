"""What the mutants offer. Importing torch here is one of the faults."""

import torch  # noqa: F401

from oasr.plugin import ComponentSpec, Kind, hookimpl
from oasr.testing.toys import plugin as toys

OASR_API = 1

_COMPONENTS = {
    Kind.DECODER: ["Neighbourly", "InPlace", "SharedDice", "Amnesiac", "HearsPadding"],
    Kind.BATCHING: ["NewestFirst", "TooMany", "Idle"],
    Kind.FRONTEND: ["LoudestOfAll", "Forgetful"],
    Kind.TOKENIZER: ["Hasty"],
    Kind.FORMAT: ["Careless"],
    Kind.ARCHITECTURE: ["PaddingMatters", "NeighboursMatter", "ForgetsItsCache", "DeafToHotwords"],
}
_NEEDS = {"InPlace": (), "Amnesiac": {"ctc-head"}, "HearsPadding": {"ctc-head"}}


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    mutants = [
        ComponentSpec(
            kind,
            name.lower(),
            "A mutant.",
            f"mutants.{kind}:{name}",
            needs=_NEEDS.get(name, {"autoregressive-head"}) if kind is Kind.DECODER else (),
            capabilities={"autoregressive-head", "language-detection"} if kind is Kind.ARCHITECTURE else (),
        )
        for kind, names in _COMPONENTS.items()
        for name in names
    ]
    return [*toys.oasr_components(), *mutants]
