"""Charts for papers: PNG, SVG and PDF, drawn by vl-convert without a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from edokit._io import whole_file
from edokit.report.chart import Chart
from edokit.report.vega import figure_spec

WIDE, NARROW = 840, 420
"""Width of the plots of a figure with several charts, and with one."""


def figure_layouts(charts: Mapping[str, Chart]) -> dict[str, list[list[str]]]:
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


def write_all(charts: Mapping[str, Chart], folder: Path) -> list[Path]:
    """Write every figure in every format; their paths."""
    import vl_convert

    written = []
    for name, columns in figure_layouts(charts).items():
        width = WIDE if len(columns) > 1 else NARROW
        spec = figure_spec([[charts[key] for key in column] for column in columns], width)
        contents = {
            "png": vl_convert.vegalite_to_png(spec, scale=2),
            "svg": _renumbered(vl_convert.vegalite_to_svg(spec)).encode(),
            "pdf": vl_convert.vegalite_to_pdf(spec),
        }
        drawn_before = _holds(folder / f"{name}.svg", contents["svg"])
        for ending, content in contents.items():
            path = folder / f"{name}.{ending}"
            written.append(path)
            # The order of a PDF's resources changes from run to run: the SVG tells whether the
            # figure is the same.
            if ending == "pdf" and drawn_before and path.exists():
                continue
            with whole_file(path) as temporary:
                temporary.write_bytes(content)
    return written


def _renumbered(svg: str) -> str:
    """An SVG whose ids are numbered from 0; Vega counts them on from chart to chart."""
    numbers: dict[str, int] = {}
    return re.sub(
        r"\b(clip|gradient_)(\d+)\b",
        lambda match: f"{match[1]}{numbers.setdefault(match[0], len(numbers))}",
        svg,
    )


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content."""
    return path.exists() and path.read_bytes() == content
