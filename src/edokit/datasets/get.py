"""Obtaining LeWiDi 2023 and 2025 from their repository, each file checked before it is kept."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import BinaryIO, NamedTuple

from edokit._errors import InputError, check_number, examples, option, warn
from edokit._io import whole_file
from edokit._version import __version__

REPOSITORY = "https://github.com/Le-Wi-Di/le-wi-di.github.io"
COMMIT = "45d7b06e4c36b59472d6bdf9281f7f1e395eb0e0"
_RAW = f"https://raw.githubusercontent.com/Le-Wi-Di/le-wi-di.github.io/{COMMIT}"
_SECONDS = 30
"""How long the network may be silent."""
TIMEOUT = 600
"""Seconds for all files together."""
_LARGEST = 2**26
"""Bytes beyond which it is another file."""


class Published(NamedTuple):
    """One file as it was published."""

    dataset: str
    split: str
    digest: str
    """SHA-256, or git's id of the content (SHA-1)."""
    folder: str
    """In the repository."""
    earlier: str = ""
    """SHA-256 of the file as the shared task handed it out, which a local copy may hold."""

    @property
    def name(self) -> str:
        part = "annotators_meta" if self.split == "annotators" else self.split
        return f"{self.dataset}_{part}.json"

    @property
    def url(self) -> str:
        inside = self.dataset if self.folder == _FOLDER_2025 else f"{self.dataset}_dataset"
        return f"{_RAW}/{self.folder}/{inside}/{self.name}"

    def digest_of(self, content: bytes) -> str:
        """The content's digest of the kind that is known of this file."""
        if len(self.digest) == 64:
            return hashlib.sha256(content).hexdigest()
        blob = b"blob %d\0" % len(content) + content
        return hashlib.sha1(blob, usedforsecurity=False).hexdigest()

    def matches(self, content: bytes) -> bool:
        """Whether the content is the published one."""
        return self.digest_of(content) == self.digest

    def is_earlier(self, content: bytes) -> bool:
        """Whether the content is that of the shared task's own release."""
        return hashlib.sha256(content).hexdigest() == self.earlier


_FOLDER_2025 = "LeWiDi_3-2025"


_EARLIER = {
    "CSC_train.json": "e7685770d91a354ff506e0df8f00031cdfdf0fbef33a04d645a11fe02ced6c3b",
    "CSC_test.json": "eec689e537572f96a4365f98e87eeae41703aab7c0d194f47b0297b8b1b78841",
    "MP_train.json": "01f273c87ddef59487df7fbf10fa6c85f6eeb420816de64de9ed8829dcf6b873",
    "MP_test.json": "d0d09bbeb428e2ab830bb3b28abe228ed86cc9822eeaa2f322f50836571d3e67",
    "Paraphrase_test.json": "1bf385e6b9e36d185a60d259a63534ae9759e0bab3dc9dcc05f760f3e74c0e7d",
    "VariErrNLI_test.json": "075231623b0e129c5d30b1d3db3f92b9cc0962fe308550e069e5186b9498181d",
}


def _published(listed: str, folder: str) -> tuple[Published, ...]:
    rows = map(str.split, listed.strip().splitlines())
    files = (Published(dataset, split, digest, folder) for dataset, split, digest in rows)
    return tuple(file._replace(earlier=_EARLIER.get(file.name, "")) for file in files)


LEWIDI2023 = _published(
    """
    ArMIS train 549dcd92484fa916e4b8076476fba451cda09b8dca0ba501e70cf5a72c1397f7
    ArMIS dev 482112222496c64a704ea22f710bf184196beee848f5109406e3ca6196502526
    ArMIS test 95498bb854fe476ee33a88cfecb3b05f26e0e1baef6c1083072a56b61586c06a
    ConvAbuse train f68d9c1e234afaf7e582103daac4e0f362da6418be3ff38e6cce76cfa3b674fc
    ConvAbuse dev d95f9e740b07076e070ed47a8e010894d7cdbacb3246c89a000c26a17c61a04e
    ConvAbuse test 4a88c6cf2530eb3610bd1e9e7291916ad7fdaedc01dca4e68bcc3e846310afd9
    HS-Brexit train d204d83c7b1a73f037b3aff36aac61357c08a96f96292a37ac7655eb562d81fb
    HS-Brexit dev 77c17f95985cbb6db47ffcda637e717a9074f2660e15b5c0c1f9006f50da60a7
    HS-Brexit test 24e5e1615818ff6e3b96e50245cfe10636ef8ec0ea51f2c2a60acb68858fd195
    MD-Agreement train 0b100595f7d10fd9b4624c647af2888597472b2dea90643dc788278714f57a6d
    MD-Agreement dev b42b6b54015589504de259241e14c17ff605baab4eb146effcb17a95fbfd69f5
    MD-Agreement test a30f185ece8bc99a45ce50e0311593ee1a6882a816c93f6915cabd368f3fad53
    """,
    "LeWiDi_2-2023",
)
LEWIDI2025 = _published(
    """
    CSC train 9661f5b1d269c3d422745ea54119d8b6376b457d
    CSC dev e20b142573639c50640b2ab720d79d348005b174e36bc8332fbadbfd53160be5
    CSC test dd60828aae86f74e7bc7e5b4ba1e617841fe8a0d
    CSC annotators 06a4b494e6cbb7f4b5636efd7f6174316c3311ab870988bcedbfa4fd3cfac4bd
    MP train f31e900a036b447b5f3f47cec811b1cb4eda3fc8
    MP dev 284bd1d9119b46878b9eb18db369e90db53d1e9cf7ce0c519157bac53bd24e29
    MP test b60a0d162ab17522c2c006482df83f2db3eb5f9b
    MP annotators 8b0e310e21246884847f36d0e5c54de22e6031c11fd7e5e2447cdd884619ea3e
    Paraphrase train 2ec98bad361732dbb568e4acea339edbbd747299fbd716e99812e4f14042bc53
    Paraphrase dev 821f8b142d63c9ccc38cb801fa6ca4cdcfe5049c8bfb151c7d7d3dd025db8e03
    Paraphrase test 78ed5b95db772fe918f956700154dc38dfdeb839
    Paraphrase annotators a5d56635ea516288e26e162cd5599db95b3fa89dad24fee4f6d5a37ec125a0e4
    VariErrNLI train 466a507dec72eb118d528e52aa5a905cb23a4e5acaf7af02062938ea958d1a0d
    VariErrNLI dev 6d1b5ca80ee4eb79c608de828b386f524cacddc608d0396464c71d728b369efd
    VariErrNLI test 73c3e62ea6e9749aecd4642f1a28abe5362b695d
    VariErrNLI annotators 3cd41a2a8cad537788b5bdf46b2c9dac3731142a6a9704484b60275fa0b2dc66
    """,
    _FOLDER_2025,
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
    return _get(LEWIDI2023, out, source, progress, timeout, open_url)


def get_lewidi2025(
    out: str | Path,
    source: str | Path | None = None,
    *,
    progress: Callable[[int, int, str], None] | None = None,
    timeout: float = TIMEOUT,
    open_url: Callable[[str], BinaryIO] | None = None,
) -> list[Path]:
    """Obtain the sixteen files of LeWiDi 2025: train, dev, test and annotators of four datasets.

    As `get_lewidi2023`. The repository's test files have labels. A local copy may also hold the
    files as the shared task handed them out: test without labels, and the train files of CSC and
    MP of the practice phase; a warning names those.
    """
    return _get(LEWIDI2025, out, source, progress, timeout, open_url)


def _get(
    files: Sequence[Published],
    out: str | Path,
    source: str | Path | None,
    progress: Callable[[int, int, str], None] | None,
    timeout: float,
    open_url: Callable[[str], BinaryIO] | None,
) -> list[Path]:
    check_number("timeout", timeout, 0, above=True)
    end = time.monotonic() + timeout
    paths = {file: Path(out) / file.dataset / file.name for file in files}
    missing = [file for file in files if not _is_right(paths[file], file, source is not None)]
    local = {} if source is None else _local_copy(Path(source), missing)
    for done, file in enumerate(missing, len(paths) - len(missing) + 1):
        content = local[file] if local else _download(file, open_url or open_https, end)
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
    content = bytearray()
    failure: list[BaseException] = []

    def fetch() -> None:
        try:
            with open_url(file.url) as body:
                # What has arrived, so that the deadline is seen however slowly it comes.
                read = getattr(body, "read1", body.read)
                # More than expected is enough to know that it is another file.
                while len(content) <= _LARGEST and not failure and (part := read(1 << 16)):
                    content.extend(part)
        except BaseException as error:
            failure.append(error)

    # A thread of its own: a server may also take for ever over the handshake or the headers.
    thread = Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(max(0.0, end - time.monotonic()))
    if thread.is_alive():
        failure.append(TimeoutError(f"the time is over after {len(content):,} bytes"))
    for error in failure:
        if not isinstance(error, OSError | http.client.HTTPException):
            raise error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"can't download {file.url}: {reason or type(error).__name__}",
            f"run it again, finished files are kept; give more time with {option('timeout')}, or"
            f" take a local copy with {option('source', 'DIR')}",
        ) from error
    return _checked(bytes(content), file, file.url)


def _local_copy(source: Path, files: Sequence[Published]) -> dict[Published, bytes]:
    """The content of each file, which is anywhere in a folder or zip.

    A copy may also hold files as the shared task handed them out.
    """
    contents: dict[Published, bytes] = {}
    for file in files:
        copies = list(_copies(source, file.name))
        if not copies:
            raise InputError(
                f"the local copy {source} is not complete: it has no {file.name}",
                f"take the folder {file.folder} of {REPOSITORY}",
            )
        place, content = copies[0]
        contents[file] = content if file.is_earlier(content) else _checked(content, file, place)
    earlier = [file.name for file, content in contents.items() if file.is_earlier(content)]
    if earlier:
        warn(
            f"{examples(earlier, len(earlier))} are not as published last, but as the shared task"
            " handed them out: train of the practice phase, test without labels"
        )
    return contents


def _copies(source: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Place and content of the files of this name in a folder or zip."""
    if source.is_dir():
        for path in sorted(source.rglob(name)):
            yield str(path), path.read_bytes()
        return
    try:
        with zipfile.ZipFile(source) as archive:
            for entry in archive.namelist():
                if PurePosixPath(entry).name == name:
                    with archive.open(entry) as body:
                        # One byte more than it may have shows that it is another file.
                        yield f"{entry} in {source}", body.read(_LARGEST + 1)
    except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error) as error:
        raise InputError(
            f"can't read {name} from {source}, which is no folder or whole zip: {error}",
            f"check {option('source')}, or get it again",
        ) from error


def _is_right(path: Path, file: Published, local: bool) -> bool:
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return file.matches(content) or (local and file.is_earlier(content))


def _checked(content: bytes, file: Published, where: str) -> bytes:
    if file.matches(content):
        return content
    size = f"over {_LARGEST:,}" if len(content) > _LARGEST else f"{len(content):,}"
    kind = "git blob id" if len(file.digest) == 40 else "SHA-256"
    raise InputError(
        f"{where} has {size} bytes with the {kind} {file.digest_of(content)[:12]}…, but {file.name}"
        f" was published with {file.digest[:12]}…",
        "it was cut off or changed: get it again",
    )
