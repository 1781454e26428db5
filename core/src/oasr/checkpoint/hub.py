"""From what a user names to a path: something on this machine, a packaged model, or a model of the Hugging Face Hub."""

import os
from pathlib import Path

from oasr.checkpoint.damage import blaming, shortened
from oasr.checkpoint.hub_cache import HubId, cache_folder, is_offline, snapshot
from oasr.checkpoint.hub_files import missing_files, wanted
from oasr.errors import CheckpointError, ModelNotFoundError, UnknownComponentError
from oasr.plugin import Kind
from oasr.registry import Registry
from oasr.registry.hints import did_you_mean


def locate(model: str | Path | None, registry: Registry) -> Path:
    """The folder or file of a model: an existing path, a packaged model, or a Hub id `org/name[@revision]`.

    None means the one packaged model. A model that is complete in the local cache is used without opening a
    connection; otherwise what is missing is downloaded. Raises `CheckpointError` when nothing of that name can be had,
    naming the files that are missing.
    """
    if model is None:
        return _only_packaged(registry)
    text = str(model)
    path = Path(os.path.expanduser(text))  # noqa: PTH111  which leaves a user that is not there as it is
    with blaming(path, "cannot be looked up"):
        if text.strip() and path.exists():
            return path
    if _is_packaged(text, registry):
        return packaged_path(text, registry)
    hub_id = HubId.parse(text)
    if hub_id is None or isinstance(model, Path):
        raise ModelNotFoundError(_unknown(text, registry))
    return _from_hub(hub_id)


def packaged_path(name: str, registry: Registry) -> Path:
    """Where an installed package keeps its model. Raises an `OasrError` when the package is damaged."""
    path: Path = registry.load(Kind.MODEL, name)().path()
    return path


def _only_packaged(registry: Registry) -> Path:
    names = registry.names(Kind.MODEL)
    if len(names) == 1:
        return packaged_path(names[0], registry)
    installed = f"several are installed ({', '.join(names)})" if names else "none is installed"
    raise ModelNotFoundError(
        f"No model was named, and of packaged models {installed}. Name one, a folder, or a Hub id such as "
        "openai/whisper-tiny."
    )


def _is_packaged(name: str, registry: Registry) -> bool:
    try:
        registry.spec(Kind.MODEL, name)
    except UnknownComponentError:
        return False
    return True


def _unknown(text: str, registry: Registry) -> str:
    packaged = registry.names(Kind.MODEL)
    return (
        f"There is no file, folder or packaged model {text!r}, and it is not a Hub id such as openai/whisper-tiny. "
        f"Packaged models installed: {', '.join(packaged) or 'none'}.{did_you_mean(text, packaged)}"
    )


def _from_hub(model: HubId) -> Path:
    folder = snapshot(model)
    missing = missing_files(folder) if folder else []
    if folder and not missing:
        return folder
    if folder:
        lacking = f"{model} is no path here, and its copy in {cache_folder()} lacks {shortened(missing)}"
    else:
        lacking = (
            f"{model} is no path here and not in {cache_folder()}, which needs config.json, model.safetensors and "
            "tokenizer.json of it"
        )
    if is_offline():
        raise ModelNotFoundError(
            f"{lacking}, and HF_HUB_OFFLINE forbids downloading. Unset it, or copy the model to a folder and name that."
        )
    return _download(model, lacking)


def _download(model: HubId, lacking: str) -> Path:
    # Imported here: it is slow, and a model that is cached never needs it.
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        # This call fails at once without a connection, where listing the files would retry for half a minute.
        listing = HfApi().model_info(model.repository, revision=model.revision).siblings or []
        folder = snapshot_download(
            model.repository,
            revision=model.revision,
            allow_patterns=wanted(file.rfilename for file in listing),
            cache_dir=cache_folder(),
        )
    except GatedRepoError as error:
        raise CheckpointError(
            f"{model} is gated: accept its terms on https://huggingface.co/{model.repository}, then run: hf auth login"
        ) from error
    except RevisionNotFoundError as error:
        raise ModelNotFoundError(f"{model.repository} has no branch, tag or commit {model.revision!r}.") from error
    except RepositoryNotFoundError as error:
        raise ModelNotFoundError(
            f"{model.repository} is no path here, and the Hugging Face Hub has no such model, or it is private: check "
            "the name, or run: hf auth login"
        ) from error
    except Exception as error:  # which library raises what for a broken connection changes between releases
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CheckpointError(
            f"{lacking}, and the download failed ({reason}). What has arrived is kept. Check the connection and try "
            "again; or work offline: copy the model from another machine to a folder and name that folder."
        ) from error
    if missing := missing_files(Path(folder)):
        raise CheckpointError(f"{model} on the Hugging Face Hub lacks {shortened(missing)}, so it cannot be loaded.")
    return Path(folder)
