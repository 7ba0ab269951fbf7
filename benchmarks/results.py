"""Write ``RESULTS.md``, in which every benchmark has its own section."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "RESULTS.md"
FIGURES = FILE.parent / "figures"
_HEAD = """# Results
Written by the programs named in each section, not by hand. Compare ratios, not seconds: both sides
of a ratio come from the same run.
"""


def write_section(title: str, text: str) -> None:
    """Put the section ``title`` into the file, in place of an older one of this name."""
    before = _HEAD
    if FILE.exists():
        before = FILE.read_text(encoding="utf-8")
    head, *sections = re.split(r"^(?=## )", before, flags=re.MULTILINE)
    new = f"## {title}\n\n{text.rstrip()}\n"
    names = [section.splitlines()[0] for section in sections]
    if f"## {title}" in names:
        sections[names.index(f"## {title}")] = new
    else:
        sections.append(new)
    parts = [part.strip() + "\n" for part in (head, *sections)]
    FILE.write_text("\n".join(parts), encoding="utf-8")


def rewrite(page: Path, marks: tuple[str, str], text: str) -> None:
    """Replace a part of a page; text and part begin and end with the same two marks."""
    before = page.read_text(encoding="utf-8")
    pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
    page.write_text(re.sub(pattern, lambda _: text, before, flags=re.DOTALL), encoding="utf-8")


def machine(*packages: str) -> str:
    """The processor, its cores, and the versions of Python and these packages, in one line."""
    versions = [f"Python {platform.python_version()}"]
    for name in packages:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"no {name}")
    cores = os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return f"Machine: {_processor()}, {cores} cores, {platform.system()}; {', '.join(versions)}."


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
        if model:
            return model[1].strip()
    return platform.processor() or platform.machine()


def save_figure(chart: Any, name: str, folder: Path = FIGURES) -> Path:
    """Write an Altair chart, the same bytes for the same drawing."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.svg"
    chart.save(file)
    return file
