"""Does work at import; it is listed with the time that cost."""

import time

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1

time.sleep(1.5)


@hookimpl
def oasr_components():
    return [ComponentSpec(Kind.DECODER, "slow", "Sabotaged", "bad_slow_import.decoder:Decoder")]
