"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edokit.errors import InputError

_MARK = ".unfinished-"


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside ``path`` that takes its place only when all is written.

    If ``path`` came to exist meanwhile, it stays and the new folder is dropped.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = f"{_MARK}{platform.node()}-{os.getpid()}-"
        temporary = Path(tempfile.mkdtemp(prefix=name, dir=path.parent))
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
        # mkdtemp makes private folders; the umask can only be read by setting it.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        try:
            temporary.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    except OSError as error:
        raise InputError(
            f"{path} must be writable, but {error.strerror or error}", "choose another place"
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what processes of this machine that are gone have left behind."""
    mine = f"{_MARK}{platform.node()}-"
    for left in folder.rglob(f"{mine}*"):
        process = left.name.removeprefix(mine).partition("-")[0]
        if not _alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
