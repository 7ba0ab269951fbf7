"""Digests of files, folders and values.

All are SHA-256 in hexadecimal digits, except where a standard defines another form: git's id of a
file, and the hash in a content security policy.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from edokit._io.atomic import cannot_read

_BLOCK = 2**20
_LARGEST_INPUT = 2**30


def digest_parts(parts: Iterable[bytes]) -> str:
    """SHA-256 of concatenated parts; it does not depend on where the parts are divided."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def digest_text(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return digest_parts([text.encode()])


def digest_json(value: object) -> str:
    """SHA-256 of a JSON value; it does not depend on the order of keys."""
    return digest_text(json.dumps(value, sort_keys=True))


def digest_file(path: Path) -> str:
    """SHA-256 of the content of a file."""
    with path.open("rb") as stream:
        return digest_parts(iter(lambda: stream.read(_BLOCK), b""))


def digest_input(path: Path) -> str | None:
    """SHA-256 of a file, or of the names and content of a folder's files; None above one GiB.

    Hidden files and hidden folders in it are ignored: they are left by an interrupted writer.
    """
    try:
        files = []
        for file in sorted(path.rglob("*")):
            is_hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.is_file() and not is_hidden:
                files.append(file)
        if not files:
            files = [path]
        if any(file.exists() and not file.is_file() for file in files):
            raise OSError("it is not a regular file")
        if sum(file.stat().st_size for file in files) > _LARGEST_INPUT:
            return None
        digest = hashlib.sha256()
        for file in files:
            if file != path:
                digest.update(file.relative_to(path).as_posix().encode() + b"\0")
            digest.update(file.read_bytes())
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from error
    return digest.hexdigest()


def git_digest(content: bytes) -> str:
    """The SHA-1 that git assigns to a file with this content."""
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def policy_digest(script: str) -> str:
    """SHA-256 of a script in the form of a content security policy: ``sha256-…`` in base 64."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{b64encode(digest).decode()}"
