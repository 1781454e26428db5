"""What a checkpoint's JSON files say of decoding, in the shapes that toolkits write."""

from reprlib import repr as shortly

from pydantic import BaseModel, NonNegativeInt, StrictInt, ValidationError

from oasr.checkpoint.json_file import read_object
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint

Ids = list[StrictInt]


class Settings(BaseModel):
    """By the names of transformers, and the last two by those of CTranslate2; None when nothing is stated."""

    eos_token_id: StrictInt | Ids | None = None
    decoder_start_token_id: StrictInt | Ids | None = None
    no_timestamps_token_id: StrictInt | Ids | None = None
    prev_sot_token_id: StrictInt | Ids | None = None
    is_multilingual: bool | None = None
    task_to_id: dict[str, StrictInt] | None = None
    lang_to_id: dict[str, StrictInt] | None = None
    suppress_tokens: Ids | None = None
    begin_suppress_tokens: Ids | None = None
    alignment_heads: list[tuple[NonNegativeInt, NonNegativeInt]] | None = None
    max_initial_timestamp_index: NonNegativeInt | None = None
    suppress_ids: Ids | None = None
    suppress_ids_begin: Ids | None = None


class _Token(BaseModel):
    content: str
    id: StrictInt


class _Tokenizer(BaseModel):
    added_tokens: list[_Token]


def read_settings(checkpoint: Checkpoint, faults: list[str]) -> Settings:
    """The generation settings over the configuration, where newer exports leave empty lists.

    What has another shape is added to `faults` and taken as not stated.
    """
    stated, files = {}, {}
    for file, content in (("config.json", checkpoint.config), ("generation_config.json", checkpoint.generation)):
        said = {key: content[key] for key in Settings.model_fields if content.get(key) is not None}
        stated |= said
        files |= dict.fromkeys(said, file)
    try:
        return Settings.model_validate(stated)
    except ValidationError as error:
        wrong = {str(fault["loc"][0]): fault["msg"] for fault in reversed(error.errors())}
    faults += [f"{files[key]} has {key} {shortly(stated[key])}: {message}" for key, message in wrong.items()]
    return Settings.model_validate({key: value for key, value in stated.items() if key not in wrong})


def read_spellings(checkpoint: Checkpoint) -> dict[str, int]:
    """Id of every added token as tokenizer.json spells it. Raises `CheckpointError` when there is none."""
    if "tokenizer" not in checkpoint.files:
        raise CheckpointError(
            f"{checkpoint.path} has no tokenizer.json, which names the control tokens and turns ids into text; "
            "copy it from the original model."
        )
    path = checkpoint.files["tokenizer"]
    try:
        return {token.content: token.id for token in _Tokenizer.model_validate(read_object(path)).added_tokens}
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise CheckpointError(
            f"{path} is not a tokenizer of the tokenizers library: {where}: {fault['msg']}."
        ) from None
