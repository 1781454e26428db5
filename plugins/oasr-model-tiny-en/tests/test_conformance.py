"""The packaged model keeps the laws of packaged models."""

from oasr.testing import ModelSuite, PluginSuite


class TestPlugin(PluginSuite):
    plugin = "oasr_model_tiny_en.plugin"


class TestTinyEn(ModelSuite):
    component = "tiny-en"
