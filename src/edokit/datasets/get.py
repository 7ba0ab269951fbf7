"""Downloading LeWiDi 2023 and 2025 from their repository; a file is kept once it is checked."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Overdue
from importlib.resources import files
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import BinaryIO, NamedTuple

from edokit._errors import InputError, check_number, one_of, option
from edokit._io.atomic import whole_file
from edokit._io.digests import digest_parts, git_digest
from edokit._package import __version__
from edokit._progress import Progress

REPOSITORY = "https://github.com/Le-Wi-Di/le-wi-di.github.io"
COMMIT = "45d7b06e4c36b59472d6bdf9281f7f1e395eb0e0"
_RAW = f"https://raw.githubusercontent.com/Le-Wi-Di/le-wi-di.github.io/{COMMIT}"
_SECONDS = 30
"""Timeout of a single operation of the network."""
_LARGEST = 2**26
"""Size in bytes that no published file exceeds."""


class Published(NamedTuple):
    """A published file.

    Attributes
    ----------
    path : str
        Its path in the repository.
    digest : str
        SHA-256 of its content, or git's id of the content (SHA-1).
    """

    path: str
    digest: str

    @property
    def name(self) -> str:
        """The name of the file."""
        return PurePosixPath(self.path).name

    @property
    def dataset(self) -> str:
        """The name of the dataset, such as ``HS-Brexit``."""
        return PurePosixPath(self.path).parent.name.removesuffix("_dataset")

    @property
    def url(self) -> str:
        """The address of the file."""
        return f"{_RAW}/{self.path}"

    def matches(self, content: bytes) -> bool:
        """Whether this is the published content."""
        return self.digest in (digest_parts([content]), git_digest(content))


def _read_published() -> dict[str, list[Published]]:
    content = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    published = {}
    for name, entries in content.items():
        published[name] = [Published(**entry) for entry in entries]
    return published


DATASETS = _read_published()
"""The files of each dataset."""


def get_dataset(
    name: str,
    out: str | Path,
    source: str | Path | None = None,
    *,
    progress: Progress | None = None,
    timeout: float = 600,
    open_url: Callable[[str], BinaryIO] | None = None,
) -> list[Path]:
    """Download the files of a public dataset from its official repository, or copy them.

    A file is kept only if its checksum is right. Files that exist already with the right checksum
    are not downloaded again, so an interrupted call can be repeated. The test files of
    ``lewidi2025`` have labels; files without labels, as the shared task first published them, are
    read with `read_annotations` or `edo score` directly.

    Parameters
    ----------
    name : {"lewidi2023", "lewidi2025"}
        The dataset.
    out : str or Path
        The folder for the files, which are named ``out/HS-Brexit/HS-Brexit_train.json`` and so on.
    source : str or Path, default=None
        The folder of a local copy, from which all files are copied, or none if one is missing. None
        downloads the files.
    progress : callable, default=None
        Called with the number of files that are complete, the number of all files, and the name of
        the last file.
    timeout : float, default=600
        Seconds that all downloads together may take.
    open_url : callable, default=None
        Opens an address for reading. By default, only https addresses can be opened.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If a file can't be downloaded or copied, or has other content than the published file.
    """
    one_of("the dataset", name, DATASETS)
    check_number("timeout", timeout, 0, above=True)
    deadline = time.monotonic() + timeout
    paths = {file: Path(out) / file.dataset / file.name for file in DATASETS[name]}
    missing = [file for file in paths if not _is_complete(paths[file], file)]
    local_contents: dict[Published, bytes] = {}
    if source is not None:
        # All are read before the first is written.
        local_contents = {file: _local_content(Path(source), file) for file in missing}
    done = len(paths) - len(missing)
    for file in missing:
        if source is None:
            content = _download(file, open_url or open_https, deadline)
        else:
            content = local_contents[file]
        with whole_file(paths[file]) as temporary:
            temporary.write_bytes(content)
        done += 1
        if progress is not None:
            progress(done, len(paths), file.name)
    return list(paths.values())


def open_https(url: str) -> BinaryIO:
    """The body of an https address; other addresses are refused, also as targets of redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(url, headers={"User-Agent": f"edokit/{__version__}"})
    body: BinaryIO = opener.open(request, timeout=_SECONDS)
    return body


def _download(file: Published, open_url: Callable[[str], BinaryIO], deadline: float) -> bytes:
    """The content of a file, which stays in memory until it has been checked."""
    content: Future[bytes] = Future()

    def fetch() -> None:
        try:
            with open_url(file.url) as body:
                # One byte more than the largest size shows that it is another file.
                content.set_result(body.read(_LARGEST + 1))
        except BaseException as error:
            content.set_exception(error)

    # In a thread, since a server may send the handshake, the headers or the body endlessly.
    Thread(target=fetch, daemon=True).start()
    try:
        return _checked(content.result(deadline - time.monotonic()), file, file.url)
    except (OSError, http.client.HTTPException, Overdue) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(error, "reason", None) or str(error) or "the timeout was reached"
        raise InputError(
            f"can't download {file.url}: {reason}",
            "run it again, since complete files are kept; allow more time with"
            f" {option('timeout')}, or copy the files from a folder with {option('source', 'DIR')}",
            code="failed-download",
        ) from error


def _local_content(source: Path, file: Published) -> bytes:
    """The content of a file in a folder or a folder below it."""
    for path in sorted(source.rglob(file.name)):
        return _checked(path.read_bytes(), file, str(path))
    raise InputError(
        f"{source} is not a complete copy: {file.name} is missing",
        f"take the folder {PurePosixPath(file.path).parts[0]} of {REPOSITORY}",
        code="incomplete-folder",
    )


def _is_complete(path: Path, file: Published) -> bool:
    """Whether the file exists with the published content."""
    try:
        return file.matches(path.read_bytes())
    except OSError:
        return False


def _checked(content: bytes, file: Published, place: str) -> bytes:
    """The content, if it is the published content."""
    if file.matches(content):
        return content
    size = f"{len(content):,}"
    if len(content) > _LARGEST:
        size = f"over {_LARGEST:,}"
    raise InputError(
        f"{place} has {size} bytes and is not {file.name} as published, whose checksum is"
        f" {file.digest[:12]}…",
        "it was cut off or changed: download it again",
        code="wrong-checksum",
    )
