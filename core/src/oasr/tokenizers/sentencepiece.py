"""SentencePiece models, read by the `sentencepiece` library, an optional dependency."""

from collections.abc import Mapping
from pathlib import Path

from oasr.errors import CheckpointError, MissingDependencyError
from oasr.tokenizers.pieces import PARTED_IDEOGRAPHS, PieceTokenizer
from oasr.tokenizers.symbols import read_symbols


class SentencePieceTokenizer(PieceTokenizer):
    """Text is cut into pieces by the model. Ids are those of the symbol table where there is one, else the model's.

    The pieces of some tables are not all the model's: Chinese characters beside English pieces, for one. What the model
    does not know is spelt with the table alone.
    """

    def __init__(self, files: Mapping[str, Path]):
        path = files.get("sentencepiece")
        if path is None:
            raise CheckpointError("The checkpoint has no SentencePiece model; copy its .model file beside the weights")
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            raise MissingDependencyError(
                f"{path.name} needs the package sentencepiece: pip install 'oasr-core[sentencepiece]'"
            ) from error
        try:
            self._model = SentencePieceProcessor(model_proto=path.read_bytes())
        except (OSError, RuntimeError) as error:
            raise CheckpointError(f"{path}: not a readable SentencePiece model: {error}") from error
        if not self._model.get_piece_size():
            raise CheckpointError(f"{path}: the SentencePiece model is empty")
        table = files.get("symbols")
        super().__init__(
            [self._model.id_to_piece(token) for token in range(self._model.get_piece_size())]
            if table is None
            else read_symbols(table)
        )

    def encode(self, text: str) -> list[int]:
        """Pieces as the model cuts them. Raises `RequestError` for what the vocabulary cannot spell."""
        spelled = self._spelled(text)
        found: list[int] = []
        for part in PARTED_IDEOGRAPHS.split(spelled) if self._ideographs_alone else [spelled]:
            if PARTED_IDEOGRAPHS.fullmatch(part):  # not the model's business, or it would put a blank before it
                found += self._fewest(part, text)
                continue
            for piece in self._model.encode(part, out_type=str):
                found += self._alone(piece) or self._fewest(piece, text)
        return found
