"""`edo demo`: the whole pipeline on simulated annotators."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from edokit._errors import are
from edokit.cli import console, options
from edokit.cli.report import add_page

NAMES = {
    "constant": "constant",
    "best-single": "best single member",
    "uniform": "uniform mean",
    "edo": "EDO",
    "edo-paper": "EDO, the paper's search",
}


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Keep data, predictions and results in this folder.")
    ] = None,
    regime: Annotated[
        str,
        typer.Option(
            help="Regime: three-voices, partial-panel, two-camps, crowd, seven-points (ordinal) or"
            " three-labels (multi-label)."
        ),
    ] = "partial-panel",
    members: Annotated[int, typer.Option(help="How many members to train.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of annotators, texts and members.")] = 0,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Simulate annotators who disagree, train ten quick members, and pool them with EDO.

    Once with its defaults, and once as the paper does: fifty trials of a search. Then two panels of
    annotators are asked, with members that know who answers: where do they part ways?
    """
    with console.progress() as bars:
        update = console.add_bar(bars, "starting")
        from edokit.demo import run_demo
        from edokit.metrics import METRIC
        from edokit.runs import command_text

        result, compared = run_demo(
            regime,
            members=members,
            random_state=seed,
            out=out,
            overwrite=overwrite,
            step=lambda done, total, what: update(done, total, description=what),
            command=command_text(["edo", *sys.argv[1:]]),
        )
        if out is not None:
            add_page(out, overwrite=overwrite)
    if json:
        console.print_json(result)
        return
    sizes = ", ".join(f"{count} {name}" for name, count in result["items"].items())
    metrics = [name for name in METRIC if name in result["methods"][0]]
    rows = [
        [NAMES[method["name"]], *(f"{method[key]:.4f}" for key in (*metrics, "truth_ce"))]
        for method in result["methods"]
    ]
    floor, true_floor = f"{result['ce_floor']:.4f}", f"{result['truth_ce_floor']:.4f}"
    floors = [floor if name == "ce" else "" for name in metrics]
    rows.append(["best possible", *floors, true_floor])
    headline = METRIC[result["headline"]].short
    soft = [METRIC[name].short for name in metrics if not METRIC[name].hard]
    gain, size, searched = result["gain"], result["ensemble"]["size"], result["search"]
    console.print_table(
        f"{result['annotators']} simulated annotators ({regime}), {sizes} items",
        ["test split", *(METRIC[name].label for name in metrics), "true CE ↓"],
        rows,
        [
            f"{', '.join(soft)}: distance to the annotators' label distribution.",
            "true CE: to the distribution of everyone's labels, which only a simulator knows.",
            f"EDO keeps {size} of {members} members."
            f" Δ{headline} vs uniform: {gain['difference']:+.4f}",
            f"(95% {gain['low']:+.4f} … {gain['high']:+.4f}, p = {gain['p_value']:.4f}).",
            f"The paper's search of {searched['trials']} trials keeps"
            f" {searched['chosen']['size']}; {are(len(searched['front']), noun='trial')} on the"
            " front.",
        ],
    )
    console.print_lines([""])
    console.print_panels(compared, rows=3)
    if out:
        console.print_lines(
            [
                f"Kept in {out}: data, predictions, ensemble, search, results; see report.html and"
                " panels.html."
            ]
        )
