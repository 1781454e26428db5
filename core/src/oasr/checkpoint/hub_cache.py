"""Reads the local cache of the Hugging Face Hub, as huggingface_hub lays it out, without a network.

models--org--name/refs/main                      the commit a branch or tag stood at
models--org--name/snapshots/<commit>/<file>      links to blobs
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants  # what the environment says; the library's other modules take a second

_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubId:
    """A repository and the branch, tag or commit wanted."""

    repository: str
    revision: str = "main"

    @classmethod
    def parse(cls, text: str) -> "HubId | None":
        """From `org/name` or `org/name@revision`; None for other text."""
        repository, at, revision = text.partition("@")
        if not _ID.fullmatch(repository) or ".." in text or (at and not revision):
            return None
        return cls(repository, revision or "main")

    def __str__(self) -> str:
        return self.repository if self.revision == "main" else f"{self.repository}@{self.revision}"


def cache_folder() -> Path:
    """Where downloads lie."""
    return Path(os.path.expanduser(constants.HF_HUB_CACHE))  # noqa: PTH111  as the library does


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids the network."""
    return constants.HF_HUB_OFFLINE


def snapshot(model: HubId) -> Path | None:
    """The cached folder of a revision, complete or not; None when nothing of it is cached."""
    repository = cache_folder() / f"models--{model.repository.replace('/', '--')}"
    commit = model.revision
    reference = repository / "refs" / model.revision
    if not _COMMIT.fullmatch(commit) and reference.is_file():
        commit = reference.read_text(encoding="ascii", errors="replace").strip()
    folder = repository / "snapshots" / commit
    return folder if commit and folder.is_dir() else None


def snapshots() -> Iterator[tuple[HubId, Path]]:
    """Every cached revision that a branch or tag points to."""
    root = cache_folder()
    if not root.is_dir():
        return
    for repository in sorted(root.glob("models--*--*")):
        references = repository / "refs"
        name = repository.name.removeprefix("models--").replace("--", "/", 1)
        for reference in sorted(path for path in references.rglob("*") if path.is_file()):
            model = HubId(name, reference.relative_to(references).as_posix())
            if folder := snapshot(model):
                yield model, folder
