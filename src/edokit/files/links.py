"""Links in a folder of results, which anyone may have made."""

from __future__ import annotations

import os
from pathlib import Path

from edokit.errors import InputError


def refuse_links(folder: Path) -> None:
    """Refuse a folder with links that lead out of it: what lies elsewhere would be overwritten."""
    home = os.path.realpath(folder)
    for path in folder.rglob("*"):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(home):
            raise InputError(
                f"results are written into {folder} alone, but {path} is a link that leads out of"
                " it",
                "remove the link, or choose another folder",
            )
