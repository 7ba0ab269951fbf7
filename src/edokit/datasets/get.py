"""Obtaining LeWiDi 2023 from its official repository, each file checked before it is kept."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO, NamedTuple

from edokit._errors import InputError, examples
from edokit._io import whole_file
from edokit._version import __version__

REPOSITORY = "https://github.com/Le-Wi-Di/le-wi-di.github.io"
COMMIT = "45d7b06e4c36b59472d6bdf9281f7f1e395eb0e0"
_RAW = f"https://raw.githubusercontent.com/Le-Wi-Di/le-wi-di.github.io/{COMMIT}/LeWiDi_2-2023"
_SECONDS = 30
"""How long the network may be silent."""
TIMEOUT = 600
"""Seconds for all files together."""


class Published(NamedTuple):
    """One file as it was published."""

    dataset: str
    split: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.dataset}_{self.split}.json"

    @property
    def url(self) -> str:
        return f"{_RAW}/{self.dataset}_dataset/{self.name}"


LEWIDI2023 = tuple(
    Published(dataset, split, int(size), sha256)
    for dataset, split, size, sha256 in map(
        str.split,
        """\
        ArMIS train 746259 549dcd92484fa916e4b8076476fba451cda09b8dca0ba501e70cf5a72c1397f7
        ArMIS dev 159657 482112222496c64a704ea22f710bf184196beee848f5109406e3ca6196502526
        ArMIS test 165545 95498bb854fe476ee33a88cfecb3b05f26e0e1baef6c1083072a56b61586c06a
        ConvAbuse train 2846714 f68d9c1e234afaf7e582103daac4e0f362da6418be3ff38e6cce76cfa3b674fc
        ConvAbuse dev 966416 d95f9e740b07076e070ed47a8e010894d7cdbacb3246c89a000c26a17c61a04e
        ConvAbuse test 1005523 4a88c6cf2530eb3610bd1e9e7291916ad7fdaedc01dca4e68bcc3e846310afd9
        HS-Brexit train 667673 d204d83c7b1a73f037b3aff36aac61357c08a96f96292a37ac7655eb562d81fb
        HS-Brexit dev 142353 77c17f95985cbb6db47ffcda637e717a9074f2660e15b5c0c1f9006f50da60a7
        HS-Brexit test 142747 24e5e1615818ff6e3b96e50245cfe10636ef8ec0ea51f2c2a60acb68858fd195
        MD-Agreement train 3848592 0b100595f7d10fd9b4624c647af2888597472b2dea90643dc788278714f57a6d
        MD-Agreement dev 645218 b42b6b54015589504de259241e14c17ff605baab4eb146effcb17a95fbfd69f5
        MD-Agreement test 1783089 a30f185ece8bc99a45ce50e0311593ee1a6882a816c93f6915cabd368f3fad53
        """.splitlines()[:-1],
    )
)


def get_lewidi2023(
    out: str | Path,
    source: str | Path | None = None,
    *,
    progress: Callable[[int, int, str], None] | None = None,
    timeout: float = TIMEOUT,
    open_url: Callable[[str], BinaryIO] | None = None,
) -> list[Path]:
    """Obtain the twelve files of LeWiDi 2023 from the official repository or from a local copy.

    A file is kept only if its checksum is right. Files that are there and right are not fetched
    again, so an interrupted call can be repeated.

    Parameters
    ----------
    out : str or Path
        Where the files go, as ``out/HS-Brexit/HS-Brexit_train.json`` and so on.
    source : str or Path, default=None
        A local copy; either all of its files are taken or none. None downloads them.
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
    if not 0 < timeout < float("inf"):
        raise InputError(
            f"timeout is {timeout!r}, not a number of seconds above 0",
            f"use timeout={TIMEOUT}",
            parameters=("timeout",),
        )
    end = time.monotonic() + timeout
    paths = {file: Path(out) / file.dataset / file.name for file in LEWIDI2023}
    missing = [file for file in LEWIDI2023 if not _is_right(paths[file], file)]
    local = {} if source is None else _local_copy(Path(source), missing)
    for done, file in enumerate(missing, len(paths) - len(missing) + 1):
        content = local[file] if local else _download(file, open_url or open_https, end, timeout)
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


def _download(
    file: Published, open_url: Callable[[str], BinaryIO], end: float, timeout: float
) -> bytes:
    """The content of a file; it stays in memory until it is known to be right."""
    content = bytearray()
    failure: list[BaseException] = []
    too_late = Event()

    def fetch() -> None:
        try:
            with open_url(file.url) as body:
                # What has arrived, so that the deadline is seen however slowly it comes.
                read = getattr(body, "read1", body.read)
                # More than expected is enough to know that it is another file.
                while len(content) <= file.size and not too_late.is_set():
                    if not (part := read(1 << 16)):
                        break
                    content.extend(part)
        except BaseException as error:
            failure.append(error)

    # A thread of its own: a server may also take for ever over the handshake or the headers.
    thread = Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(max(0.0, end - time.monotonic()))
    again = "run it again, finished files are kept"
    if thread.is_alive():
        too_late.set()
        raise InputError(
            f"can't download {file.url}: {len(content):,} of {file.size:,} bytes arrived before the"
            f" {timeout:g} seconds for all downloads were over",
            f"{again}; give more time with timeout={round(4 * timeout) or 1}, or take a local copy"
            " with source='DIR'",
            parameters=("timeout", "source"),
        )
    for error in failure:
        if not isinstance(error, OSError | http.client.HTTPException):
            raise error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"can't download {file.url}: {reason or type(error).__name__}",
            f"{again}; or take a local copy with source='DIR'",
            parameters=("source",),
        ) from error
    return _checked(bytes(content), file, file.url)


def _local_copy(source: Path, files: list[Published]) -> dict[Published, bytes]:
    """The content of each file from a folder laid out as ours, as the repository, or flat."""
    if not source.is_dir():
        raise InputError(
            f"{source} is not a folder with a local copy",
            "check the spelling",
            parameters=("source",),
        )
    found: dict[Published, bytes] = {}
    for file in files:
        folders = (source / file.dataset, source / f"{file.dataset}_dataset", source)
        for path in (folder / file.name for folder in folders):
            if file not in found and path.is_file():
                found[file] = _checked(path.read_bytes(), file, str(path))
    absent = [file.name for file in files if file not in found]
    if absent:
        raise InputError(
            f"the local copy {source} is not complete: it has no {examples(absent)}",
            f"take the folder LeWiDi_2-2023 of {REPOSITORY}",
        )
    return found


def _is_right(path: Path, file: Published) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    except OSError:
        return False


def _checked(content: bytes, file: Published, where: str) -> bytes:
    if (digest := hashlib.sha256(content).hexdigest()) == file.sha256:
        return content
    size = "more" if len(content) > file.size else f"{len(content):,}"
    raise InputError(
        f"{where} has {size} bytes with the SHA-256 {digest[:12]}…, but {file.name} was published"
        f" with {file.size:,} bytes and {file.sha256[:12]}…",
        "it was cut off or changed: get it again",
    )
