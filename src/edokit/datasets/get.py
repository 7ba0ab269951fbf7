"""Obtaining LeWiDi 2023 and 2025 from their repository, each file checked before it is kept."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
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
"""How long the network may be silent."""
_LARGEST = 2**26
"""Bytes beyond which it is another file."""


class Published(NamedTuple):
    """One file as it was published.

    Attributes
    ----------
    path : str
        In the repository.
    digest : str
        SHA-256, or git's id of the content (SHA-1).
    """

    path: str
    digest: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def dataset(self) -> str:
        return PurePosixPath(self.path).parent.name.removesuffix("_dataset")

    @property
    def url(self) -> str:
        return f"{_RAW}/{self.path}"

    def matches(self, content: bytes) -> bool:
        """Whether the content is the published one."""
        return self.digest in (digest_parts([content]), git_digest(content))


DATASETS: dict[str, list[Published]] = {
    name: [Published(**file) for file in listed]
    for name, listed in json.loads(
        files(__package__).joinpath("published.json").read_text("utf-8")
    ).items()
}
"""The files of each dataset that can be obtained."""


def get_dataset(
    name: str,
    out: str | Path,
    source: str | Path | None = None,
    *,
    progress: Progress | None = None,
    timeout: float = 600,
    open_url: Callable[[str], BinaryIO] | None = None,
) -> list[Path]:
    """Obtain the files of a public dataset from its official repository or from a local copy.

    A file is kept only if its checksum is right. Files that are there and right are not fetched
    again, so an interrupted call can be repeated. The test files of ``lewidi2025`` have labels;
    files as the shared task handed them out, which have none, are read where they are.

    Parameters
    ----------
    name : {"lewidi2023", "lewidi2025"}
        The dataset.
    out : str or Path
        Where the files go, as ``out/HS-Brexit/HS-Brexit_train.json`` and so on.
    source : str or Path, default=None
        The folder of a local copy; either all of its files are taken or none. None downloads them.
    progress : callable, default=None
        Called with the number of files that are there, of how many, and the last one's name.
    timeout : float, default=600
        Seconds that all downloads together may take.
    open_url : callable, default=None
        Opens an address for reading; None opens https addresses alone.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If a file can't be obtained or has another content.
    """
    one_of("the dataset", name, DATASETS)
    check_number("timeout", timeout, 0, above=True)
    end = time.monotonic() + timeout
    paths = {file: Path(out) / file.dataset / file.name for file in DATASETS[name]}
    missing = [file for file in paths if not _is_right(paths[file], file)]
    contents: Iterable[bytes] = (_download(file, open_url or open_https, end) for file in missing)
    if source is not None:
        contents = [_local_content(Path(source), file) for file in missing]
    files = zip(missing, contents, strict=True)
    for done, (file, content) in enumerate(files, len(paths) - len(missing) + 1):
        with whole_file(paths[file]) as temporary:
            temporary.write_bytes(content)
        if progress is not None:
            progress(done, len(paths), file.name)
    return list(paths.values())


def open_https(url: str) -> BinaryIO:
    """The body of an https address; nothing else is followed, not even by way of a redirect."""
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


def _download(file: Published, open_url: Callable[[str], BinaryIO], end: float) -> bytes:
    """The content of a file; it stays in memory until it is known to be right."""
    content: Future[bytes] = Future()

    def fetch() -> None:
        try:
            with open_url(file.url) as body:
                # One byte more than it may have shows that it is another file.
                content.set_result(body.read(_LARGEST + 1))
        except BaseException as error:
            content.set_exception(error)

    # A thread of its own: a server may take for ever over the handshake, the headers or the body.
    Thread(target=fetch, daemon=True).start()
    try:
        return _checked(content.result(end - time.monotonic()), file, file.url)
    except (OSError, http.client.HTTPException, Overdue) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(error, "reason", None) or str(error) or "the time is over"
        raise InputError(
            f"can't download {file.url}: {reason}",
            f"run it again, finished files are kept; give more time with {option('timeout')}, or"
            f" take a local copy with {option('source', 'DIR')}",
            code="failed-download",
        ) from error


def _local_content(source: Path, file: Published) -> bytes:
    """The content of the first copy of a file in a folder."""
    for path in sorted(source.rglob(file.name)):
        return _checked(path.read_bytes(), file, str(path))
    raise InputError(
        f"{source} is not a complete copy: {file.name} is missing",
        f"take the folder {PurePosixPath(file.path).parts[0]} of {REPOSITORY}",
        code="incomplete-folder",
    )


def _is_right(path: Path, file: Published) -> bool:
    try:
        return file.matches(path.read_bytes())
    except OSError:
        return False


def _checked(content: bytes, file: Published, place: str) -> bytes:
    """The content, if it is the published one."""
    if not file.matches(content):
        size = f"over {_LARGEST:,}" if len(content) > _LARGEST else f"{len(content):,}"
        raise InputError(
            f"{place} has {size} bytes and is not {file.name} as published, whose checksum is"
            f" {file.digest[:12]}…",
            "it was cut off or changed: get it again",
            code="wrong-checksum",
        )
    return content
