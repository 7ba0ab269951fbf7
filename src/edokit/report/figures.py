"""Charts for papers: PNG, SVG and PDF, drawn by vl-convert without a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from edokit._io import whole_file
from edokit.report.vega import Spec, figure_spec

WIDTH = 420


def write_all(charts: Mapping[str, Spec], folder: Path) -> list[Path]:
    """Write every chart in every format; the paths."""
    paths = {
        folder / f"{name}.{ending}": figure_spec([chart], WIDTH)
        for name, chart in charts.items()
        for ending in ("png", "svg", "pdf")
    }
    for path, spec in paths.items():
        draw(spec, path)
    return list(paths)


def draw(spec: Spec, path: Path) -> None:
    """Write a figure in the format that the ending of the path names."""
    import vl_convert

    if path.suffix == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    elif path.suffix == ".pdf":
        content = vl_convert.vegalite_to_pdf(spec)
    else:
        content = _renumbered(vl_convert.vegalite_to_svg(spec)).encode()
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def _renumbered(svg: str) -> str:
    """An SVG whose ids are numbered from 0; Vega counts them on from chart to chart."""
    numbers: dict[str, int] = {}
    return re.sub(
        r"\b(clip|gradient_)(\d+)\b",
        lambda match: f"{match[1]}{numbers.setdefault(match[0], len(numbers))}",
        svg,
    )
