"""The conformance kit: the laws of each kind of component, as test classes to subclass.

    from oasr.testing import DecoderSuite

    class TestBeam(DecoderSuite):
        component = "acme-beam"

Run it with pytest. `oasr check DISTRIBUTION` runs the same classes without a test file.
"""

import pytest

# Before the suites are imported: otherwise their assertions fail without saying why.
pytest.register_assert_rewrite(
    "oasr.testing.architecture_suite",
    "oasr.testing.autoregressive_laws",
    "oasr.testing.batching_suite",
    "oasr.testing.decoder_suite",
    "oasr.testing.detector_suite",
    "oasr.testing.format_suite",
    "oasr.testing.frame_synchronous_laws",
    "oasr.testing.frontend_suite",
    "oasr.testing.interpreter",
    "oasr.testing.model_suite",
    "oasr.testing.plugin_suite",
    "oasr.testing.tokenizer_suite",
)

from oasr.testing.architecture_suite import ArchitectureSuite  # noqa: E402
from oasr.testing.batching_suite import BatchingSuite  # noqa: E402
from oasr.testing.decoder_suite import DecoderSuite  # noqa: E402
from oasr.testing.detector_suite import DetectorSuite  # noqa: E402
from oasr.testing.format_suite import FormatSuite  # noqa: E402
from oasr.testing.frontend_suite import FrontendSuite  # noqa: E402
from oasr.testing.model_suite import ModelSuite  # noqa: E402
from oasr.testing.plugin_suite import PluginSuite  # noqa: E402
from oasr.testing.registries import sealed_registry  # noqa: E402
from oasr.testing.suite import ComponentSuite, Suite  # noqa: E402
from oasr.testing.tokenizer_suite import TokenizerSuite  # noqa: E402

__all__ = [
    "ArchitectureSuite",
    "BatchingSuite",
    "ComponentSuite",
    "DecoderSuite",
    "DetectorSuite",
    "FormatSuite",
    "FrontendSuite",
    "ModelSuite",
    "PluginSuite",
    "Suite",
    "TokenizerSuite",
    "sealed_registry",
]
