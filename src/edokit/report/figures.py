"""Charts for papers: PNG, SVG and PDF, drawn by vl-convert without a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from edokit._io import whole_file
from edokit.report.vega import Spec, figure_spec

# Width of the plots of a figure with several charts, and with one.
WIDE, NARROW = 840, 420


def figure_layouts(charts: Mapping[str, Spec]) -> dict[str, list[list[str]]]:
    """The columns of charts in each figure, as far as there are such charts."""
    layouts = {
        "pareto": [[name] for name in charts if name.startswith("pareto-")],
        "correlations": [[name] for name in charts if name.startswith("correlations-")],
        "epochs": [["sizes"], ["term-f1", "term-div"], ["term-ce", "term-reg"]],
        "calibration": [["reliability"], ["entropies"], ["entropy-entropy"]],
        "scale": [["cumulative"], ["ratings"], ["labels"]],
        "diagnosis": [["variance"], ["permutations"]],
        **{name: [[name]] for name in ("weights", "cost", "methods", "slices", "members")},
    }
    present = {
        figure: [column for column in columns if set(column) <= set(charts)]
        for figure, columns in layouts.items()
    }
    return {figure: columns for figure, columns in present.items() if columns}


def write_all(charts: Mapping[str, Spec], folder: Path) -> list[Path]:
    """Write every figure in every format; their paths."""
    written = []
    for name, columns in figure_layouts(charts).items():
        width = WIDE if len(columns) > 1 else NARROW
        spec = figure_spec([[charts[key] for key in column] for column in columns], width)
        paths = [folder / f"{name}.{ending}" for ending in ("png", "svg", "pdf")]
        for path in paths:
            draw(spec, path)
        written += paths
    return written


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
