"""Sentence encoders known by short names: pinned revisions, digests, and how to get them.

They lie in the cache of the Hugging Face hub, as the hub's own tools put them there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edokit._errors import InputError, missing_extra, option
from edokit._io.atomic import whole_file
from edokit._io.digests import digest_file
from edokit._io.locks import drop_lock, take_lock
from edokit._package import __version__
from edokit._progress import Progress, no_progress

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@dataclass(frozen=True)
class EncoderFile:
    """A file of an encoder as it was published.

    Attributes
    ----------
    name : str
        Path in the repository.
    size : int
        Bytes.
    sha256 : str
        Digest of its content.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class KnownEncoder:
    """A sentence encoder on the hub that EDO knows by a short name.

    Attributes
    ----------
    name, alias : str
        Its name on the hub without the owner, and a short one.
    repository, revision : str
        Where it is on the hub, and the commit that is taken.
    license : str
    languages : str
        What it reads, in words.
    latin_only : bool
        Whether it reads texts in the Latin script alone.
    files : tuple of EncoderFile
        What onnxruntime needs of it.
    """

    name: str
    alias: str
    repository: str
    revision: str
    license: str
    languages: str
    latin_only: bool
    files: tuple[EncoderFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def folder(self) -> Path | None:
        """Where its files are on this machine; None unless all of them are there."""
        cache = hub_cache()
        if cache is None:
            return None
        folder = self.folder_in(cache)
        if all((folder / file.name).is_file() for file in self.files):
            return folder
        return None

    def folder_in(self, cache: Path) -> Path:
        """Where the hub's tools keep this revision in their cache."""
        repository = self.repository.replace("/", "--")
        return cache / f"models--{repository}" / "snapshots" / self.revision


def _read_catalogue() -> tuple[KnownEncoder, ...]:
    content = json.loads(files(__package__).joinpath("encoders.json").read_text("utf-8"))
    encoders = []
    for name, entry in content.items():
        published = [EncoderFile(file, *values) for file, values in entry.pop("files").items()]
        encoders.append(KnownEncoder(name=name, files=tuple(published), **entry))
    return tuple(encoders)


ENCODERS = _read_catalogue()
"""The encoders that EDO knows, the smallest first."""


def find_encoder(name: str) -> KnownEncoder | None:
    """The encoder of a name, a short name or a hub id."""
    for encoder in ENCODERS:
        if name in (encoder.name, encoder.alias, encoder.repository):
            return encoder
    return None


def hub_cache() -> Path | None:
    """The folder of the hub's cache; None where its library is not installed."""
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def get_encoder(
    name: str, source: str | Path | None = None, *, progress: Progress = no_progress
) -> Path:
    """Download a known encoder into the hub's cache, or copy it there; verify digests.

    Files that are complete are not fetched again. A download that is interrupted is resumed by the
    next call.

    Parameters
    ----------
    name : str
        One of `ENCODERS`, by name, short name or hub id.
    source : str or Path, default=None
        A folder with the same files. None downloads them.
    progress : callable, default=no_progress
        Called with the files done, their number, and the name of the next.

    Returns
    -------
    Path
        The folder of the encoder.

    Raises
    ------
    InputError
        If the name is unknown, or a file can't be fetched or is not the published one.
    """
    encoder = find_encoder(name)
    if encoder is None:
        encoder_names = ", ".join(f"{entry.alias} ({entry.name})" for entry in ENCODERS)
        raise InputError(
            f"no encoder is known by the name {name!r}; known are {encoder_names}",
            f"get others with the hub's own tool, such as `hf download {name}`, or name a folder:"
            " `edo run --encoder DIR`",
            code="unknown-model",
        )
    cache = hub_cache()
    if cache is None:
        raise missing_extra("`edo models get` needs the package huggingface_hub", "encoder")
    if source is None:
        fetch = _downloader(encoder)
    else:
        fetch = _copier(encoder, Path(source))
    folder = encoder.folder_in(cache)
    for done, file in enumerate(encoder.files):
        progress(done, len(encoder.files), file.name)
        path = folder / file.name
        if path.is_file():
            if digest_file(path) != file.sha256:
                _remove(path, cache)
                raise _wrong_file(encoder, file, "; it was removed")
            continue
        partial = path.with_name(f"{path.name}.partial")
        with whole_file(path) as temporary:
            fetch(file, temporary, partial)
            if digest_file(temporary) != file.sha256:
                raise _wrong_file(encoder, file)
    progress(len(encoder.files), len(encoder.files), "")
    return folder


def _wrong_file(encoder: KnownEncoder, file: EncoderFile, consequence: str = "") -> InputError:
    return InputError(
        f"{file.name} of {encoder.repository} is not the published file, whose SHA-256 is"
        f" {file.sha256[:12]}…{consequence}",
        "it was changed or damaged: get it again, from another source"
        " (HF_ENDPOINT names a mirror of the hub)",
        code="wrong-checksum",
    )


class _LimitedFile(BufferedWriter):
    """A file to append to, which refuses to grow beyond a number of bytes."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(FileIO(path, "ab"))
        self._most_bytes = most_bytes

    def write(self, data: ReadableBuffer, /) -> int:
        if self.tell() + memoryview(data).nbytes > self._most_bytes:
            raise ValueError(f"it has more than the {self._most_bytes:,} bytes that were published")
        return super().write(data)


Fetch = Callable[[EncoderFile, Path, Path], None]
"""Writes a file of an encoder to the first path; an interrupted download stays at the second."""


def _downloader(encoder: KnownEncoder) -> Fetch:
    """Return a function that downloads a file from the hub, by way of its library.

    Nothing that the hub says chooses where a file is written. The library's own `hf_hub_download`
    names files by headers of the response, so a mirror could make it write files outside the cache.
    """
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers, logging

    logging.set_verbosity_error()  # it would report each time that it tries again
    address = os.environ.get("HF_ENDPOINT") or None
    # The encoders are public: nobody's token is sent, to a mirror least of all.
    headers = build_hf_headers(token=False, library_name="edokit", library_version=__version__)

    def fetch(file: EncoderFile, path: Path, partial: Path) -> None:
        url = hf_hub_url(encoder.repository, file.name, revision=encoder.revision, endpoint=address)
        lock = take_lock(partial.with_name(f"{partial.name}.lock"), wait=True)
        try:
            with _LimitedFile(partial, file.size) as stream:
                http_get(
                    url,
                    stream,
                    resume_size=stream.tell(),
                    headers=headers,
                    expected_size=file.size,
                    displayed_filename=file.name,
                )
            partial.replace(path)
        # Errors may also come from the libraries below: requests, httpx, the system.
        except Exception as error:
            if isinstance(error, OSError | ValueError):
                # The server refused or sent another file, or the disk failed: start anew.
                partial.unlink(missing_ok=True)
            reason = str(_first_cause(error)).strip().split("\n")[0] or type(error).__name__
            raise InputError(
                f"can't download {file.name} of {encoder.repository}: {reason}",
                "run it again to go on from there; HTTPS_PROXY names a proxy, HF_ENDPOINT"
                f" a mirror, and {option('source', 'DIR')} a folder with the same files",
                code="failed-download",
            ) from error
        finally:
            drop_lock(lock)

    return fetch


def _first_cause(error: BaseException) -> BaseException:
    """The first error of a chain."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _copier(encoder: KnownEncoder, source: Path) -> Fetch:
    """Return a function that copies a file of a folder."""

    def fetch(file: EncoderFile, path: Path, partial: Path) -> None:
        original = source / file.name
        if not original.is_file():
            raise InputError(
                f"{source} has no {file.name}, which is part of {encoder.name}",
                "name a folder with the whole encoder; one that was exported elsewhere can be"
                " used where it is: `edo run --encoder DIR`",
                code="incomplete-folder",
            )
        if digest_file(original) != file.sha256:
            raise InputError(
                f"{original} is not the published file, whose SHA-256 is {file.sha256[:12]}…",
                f"to use it all the same, name its folder: `edo run --encoder {source}`",
                code="wrong-checksum",
            )
        shutil.copyfile(original, path)

    return fetch


def _remove(path: Path, cache: Path) -> None:
    """Remove a file of the hub's cache, and the content in the cache that it links to."""
    content = path.resolve()
    path.unlink()
    if content.is_relative_to(cache.resolve()):
        content.unlink(missing_ok=True)


def describe_encoders() -> list[dict[str, Any]]:
    """The known encoders as plain values, with their folders on this machine."""
    rows = []
    for encoder in ENCODERS:
        folder = encoder.folder()
        rows.append(
            {
                "name": encoder.name,
                "short_name": encoder.alias,
                "repository": encoder.repository,
                "revision": encoder.revision,
                "languages": encoder.languages,
                "license": encoder.license,
                "bytes": encoder.size,
                "folder": str(folder) if folder is not None else None,
            }
        )
    return rows
