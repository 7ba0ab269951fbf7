"""`edo demo`: the whole story on simulated people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edokit.cli import console, options


def demo(
    out: Annotated[
        Path | None, typer.Option(help="Keep data, predictions and results in this folder.")
    ] = None,
    regime: Annotated[
        str, typer.Option(help="Whom to simulate: three-voices, partial-panel, two-camps or crowd.")
    ] = "partial-panel",
    members: Annotated[int, typer.Option(help="How many members to train.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of people, texts and members.")] = 0,
    json: options.Json = False,
) -> None:
    """Simulate people who disagree, train ten quick members, pool them and see how close it is."""
    with console.progress() as bars:
        task = bars.add_task("starting", total=None, detail="")

        def step(done: int, total: int, what: str) -> None:
            bars.update(task, description=what, completed=done, total=total)

        from edokit.demo import run_demo

        result = run_demo(regime, members=members, seed=seed, out=out, step=step)
    if json:
        console.print_json(result)
        return
    sizes = ", ".join(f"{count} {name}" for name, count in result["items"].items())
    rows = [
        [
            method["name"],
            *(f"{method[key]:.4f}" for key in ("f1", "ce", "md", "bs")),
            "{:.4f} … {:.4f}".format(*method["intervals"]["ce"]),
            f"{method['truth_ce']:.4f}",
        ]
        for method in result["methods"]
    ]
    rows.append(
        [
            "best possible",
            "",
            f"{result['ce_floor']:.4f}",
            "",
            "",
            "",
            f"{result['truth_ce_floor']:.4f}",
        ]
    )
    console.print_table(
        f"{result['annotators']} simulated annotators ({regime}), {sizes} items; test split",
        ["method", "F1 ↑", "CE ↓", "MD ↓", "BS ↓", "95% of CE", "CE to truth ↓"],
        rows,
        [
            "CE: how surprised the method is by people's answers; MD, BS: distances to their"
            " shares.",
            "CE to truth: the same against everyone's true leaning, which only a simulator knows.",
            *([f"Kept in {out}: annotations.parquet, predictions/, results.json."] if out else []),
        ],
    )
