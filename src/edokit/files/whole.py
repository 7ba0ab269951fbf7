"""Files that are there and not empty, and results that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edokit.errors import InputError
from edokit.files.left_behind import sync_folder, temporary_file


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that takes its place only when all is written."""
    path = Path(path)
    made: list[Path] = []
    done = False
    try:
        # A link is followed, so that it stays a link.
        target = Path(os.path.realpath(path))
        mode = _mode(path, target)
        made += [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = temporary_file(target.parent, target.suffix)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        _remove(made)
        raise cannot_write(path, error) from error
    if os.name == "nt":  # there, an open file can't be renamed
        os.close(handle)
    try:
        yield temporary
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
        done = True
        for folder in (target.parent, *(folder.parent for folder in made)):
            sync_folder(folder)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if not done:
            # The first error counts, also where the disk lets nothing be removed.
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            _remove(made)
        if os.name != "nt":
            os.close(handle)


def check_file(path: str | Path) -> Path:
    """The path, if it is a file with something in it."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(
                f"a file is needed here, but {path} is a folder", "name a file inside it"
            )
        # Arrow, for one, opens no other names.
        str(path).encode()
        known = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"the file must exist, but {path} does not", "check the spelling"
        ) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeError as error:
        raise InputError(
            f"the name of a file must be valid Unicode, but {path} is not", "rename the file"
        ) from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} must be the name of a file, but {error}", "check the spelling"
        ) from error
    if not stat.S_ISREG(known.st_mode):
        raise InputError(
            f"an ordinary file is needed here, but {path} is a pipe or a device",
            "save its content to a file first",
        )
    if known.st_size == 0:
        raise InputError(
            f"the file must not be empty, but {path} is", "check that it was written to the end"
        )
    return path


def cannot_read(path: Path, error: OSError | ValueError) -> InputError:
    """The sentence for an input that the system does not hand out."""
    return InputError(
        f"{path} must be readable, but {getattr(error, 'strerror', None) or error}",
        "check the path and its permissions",
    )


def cannot_write(path: Path, error: OSError | ValueError) -> InputError:
    """The sentence for an output that can't be written."""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"{path} must be writable, but {reason}", "choose another place")


def _mode(path: Path, target: Path) -> int:
    """The permissions of the file that is replaced, else those of any other new file."""
    if target.is_file():
        return target.stat().st_mode & 0o777
    if target.exists():
        kind = "a folder" if target.is_dir() else "no ordinary file"
        raise InputError(f"{path} must be writable, but is {kind}", "choose another place")
    # mkstemp makes private files; the umask can only be read by setting it.
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _remove(folders: list[Path]) -> None:
    """Remove the folders that were made for a file that was not, innermost first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()
