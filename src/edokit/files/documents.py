"""Single JSON documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edokit.errors import InputError
from edokit.files.depth import check_depth
from edokit.files.explain import not_utf8
from edokit.files.whole import cannot_read, check_file, whole_file


def read_json(path: str | Path) -> Any:
    """One JSON document."""
    path = check_file(path)
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
        check_depth(content, path)
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} must be valid JSON, but line {error.lineno} column {error.colno} is not:"
            f" {error.msg}",
            "the file may be cut off; export or download it again",
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{path} must be JSON of ordinary depth, but is nested too deeply",
            "check that it is the right file",
        ) from error
    except ValueError as error:
        # Python refuses whole numbers of thousands of digits.
        raise InputError(
            f"{path} must be JSON of ordinary numbers, but: {error}",
            "check that it is the right file",
        ) from error
    except OSError as error:
        raise cannot_read(path, error) from error


def write_json(value: Any, path: str | Path) -> None:
    """Write one JSON document, readable by people."""
    with whole_file(path) as temporary:
        temporary.write_text(
            json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )
