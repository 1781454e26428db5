"""The searches keep the laws of the kit."""

from typing import ClassVar

from oasr.testing import DecoderSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_decoder_ctc.plugin"


class TestGreedy(DecoderSuite):
    component = "ctc-greedy"


class TestPrefixBeam(DecoderSuite):
    component = "ctc-prefix-beam"


class TestPrefixBeamThatSkips(DecoderSuite):
    component = "ctc-prefix-beam"
    options: ClassVar = {"skip_blank": 0.6, "beam": 4}
