"""Obtaining LeWiDi 2023 and 2025 from their repository, each file checked before it is kept."""

from __future__ import annotations

import hashlib
import http.client
import json
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Overdue
from importlib.resources import files
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import BinaryIO, NamedTuple

from edokit._errors import InputError, check_number, examples, one_of, option, warn
from edokit._io import whole_file
from edokit._package import __version__

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
    earlier : str
        SHA-256 of the file as the shared task handed it out, which a local copy may hold.
    """

    path: str
    digest: str
    earlier: str = ""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def dataset(self) -> str:
        return PurePosixPath(self.path).parent.name.removesuffix("_dataset")

    @property
    def url(self) -> str:
        return f"{_RAW}/{self.path}"

    def matches(self, content: bytes, local: bool = False) -> bool:
        """Whether the content is the published one, or in a local copy the earlier one."""
        is_earlier = local and self.earlier in _digests(content)
        return is_earlier or self.digest in _digests(content)


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
    progress: Callable[[int, int, str], None] | None = None,
    timeout: float = 600,
    open_url: Callable[[str], BinaryIO] | None = None,
) -> list[Path]:
    """Obtain the files of a public dataset from its official repository or from a local copy.

    A file is kept only if its checksum is right. Files that are there and right are not fetched
    again, so an interrupted call can be repeated. The test files of ``lewidi2025`` have labels. A
    local copy may also hold the files as the shared task handed them out: test without labels, and
    the train files of CSC and MP of the practice phase; a warning names those.

    Parameters
    ----------
    name : {"lewidi2023", "lewidi2025"}
        The dataset.
    out : str or Path
        Where the files go, as ``out/HS-Brexit/HS-Brexit_train.json`` and so on.
    source : str or Path, default=None
        A local copy, a folder or a zip; either all of its files are taken or none. None downloads
        them.
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
    missing = [file for file in paths if not _is_right(paths[file], file, source is not None)]
    contents: Iterable[bytes] = (_download(file, open_url or open_https, end) for file in missing)
    if source is not None:
        contents = _local_copy(Path(source), missing)
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
        ) from error


def _local_copy(source: Path, missing: Sequence[Published]) -> list[bytes]:
    """The content of each file, which is anywhere in a folder or zip."""
    contents: list[bytes] = []
    earlier: list[str] = []
    for file in missing:
        place, content = _local_content(source, file)
        contents.append(_checked(content, file, place, local=True))
        earlier += [file.name] if file.earlier in _digests(content) else []
    if earlier:
        warn(
            f"{examples(earlier, len(earlier))} are not as published last, but as the shared task"
            " handed them out: train of the practice phase, test without labels"
        )
    return contents


def _local_content(source: Path, file: Published) -> tuple[str, bytes]:
    """Place and content of the first copy of a file in a folder or zip."""
    if source.is_dir():
        for path in sorted(source.rglob(file.name)):
            return str(path), path.read_bytes()
    else:
        try:
            with zipfile.ZipFile(source) as archive:
                for entry in archive.namelist():
                    if PurePosixPath(entry).name == file.name:
                        with archive.open(entry) as body:
                            return f"{entry} in {source}", body.read(_LARGEST + 1)
        except (OSError, zipfile.BadZipFile, RuntimeError, zlib.error) as error:
            raise InputError(
                f"can't read {file.name} from {source}, which is no folder or whole zip: {error}",
                f"check {option('source')}, or get it again",
            ) from error
    raise InputError(
        f"the local copy {source} is not complete: it has no {file.name}",
        f"take the folder {PurePosixPath(file.path).parts[0]} of {REPOSITORY}",
    )


def _is_right(path: Path, file: Published, local: bool) -> bool:
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return file.matches(content, local)


def _checked(content: bytes, file: Published, place: str, local: bool = False) -> bytes:
    """The content, if it is the published one, or in a local copy an earlier one."""
    if not file.matches(content, local):
        size = f"over {_LARGEST:,}" if len(content) > _LARGEST else f"{len(content):,}"
        raise InputError(
            f"{place} has {size} bytes and is not {file.name} as published, whose checksum is"
            f" {file.digest[:12]}…",
            "it was cut off or changed: get it again",
        )
    return content


def _digests(content: bytes) -> set[str]:
    """SHA-256 of a content, and git's id of it."""
    blob = b"blob %d\0" % len(content) + content
    git = hashlib.sha1(blob, usedforsecurity=False)
    return {hashlib.sha256(content).hexdigest(), git.hexdigest()}
