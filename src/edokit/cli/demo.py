"""`edo demo`: the whole pipeline on simulated annotators."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from edokit._errors import are, signed
from edokit.cli import console, options
from edokit.cli.report import add_page

METHODS = {
    "constant": "constant",
    "best-single": "best single member",
    "uniform": "uniform mean",
    "edo": "EDO",
    "edo-paper": "EDO, the paper's search",
}


def demo(
    *,
    out: Path | None = None,
    regime: str = "partial-panel",
    members: int = 10,
    random_state: int = 0,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Simulate annotators who disagree, train ten quick members, and pool them with EDO.

    The pool is learned with EDO's defaults, and as in the paper, by a search of fifty trials. Then
    the answers of two panels of annotators are compared.

    Parameters
    ----------
    out : Path, optional
        Keep data, predictions and results in this folder.
    regime : str, default="partial-panel"
        Regime: three-voices, partial-panel, two-camps, crowd, seven-points (ordinal) or
        three-labels (multi-label).
    members : int, default=10
        How many members to train.
    random_state : int, default=0
        Seed of annotators, texts and members.
    """
    with console.progress() as bars:
        progress = console.add_stages(bars, "starting")
        from edokit.demo import CAMPS_FILE, camps_test_sentence, run_demo

        result, panels = run_demo(
            regime,
            members=members,
            random_state=random_state,
            out=out,
            overwrite=overwrite,
            progress=progress,
            command=console.command_line(),
        )
        if out is not None:
            add_page(out, overwrite=overwrite)
    if json:
        console.print_json(result)
        return
    _print_scores(result)
    console.print_lines(
        [
            "",
            "Another simulation, two-camps, has two groups of annotators; its posts are",
            "not those above.",
        ]
    )
    test_note = textwrap.fill(camps_test_sentence(random_state), 80)
    if out is not None:
        test_note += f"\nIn full: edo diagnose {out / CAMPS_FILE} --by group"
    console.print_panels(panels, rows=3, test_note=test_note)
    if out:
        console.print_lines(
            [f"Kept in {out}: data, predictions, ensemble, search, results; see report.html."]
        )


def _print_scores(result: dict[str, Any]) -> None:
    """The methods side by side, and what EDO and the search kept."""
    from edokit.metrics import METRIC

    sizes = ", ".join(f"{count} {name}" for name, count in result["items"].items())
    metrics = [name for name in METRIC if name in result["methods"][0]]
    by_name = {method["name"]: method for method in result["methods"]}
    records: list[dict[str, object]] = []
    for method, title in METHODS.items():
        record: dict[str, object] = {"test split": title}
        for name in metrics:
            record[METRIC[name].label] = by_name[method][name]
        record["true CE ↓"] = result["truth_ce"][method]
        records.append(record)
    records.append(
        {
            "test split": "best possible",
            METRIC["ce"].label: result["ce_floor"],
            "true CE ↓": result["truth_ce_floor"],
        }
    )
    distances = [METRIC[name].short for name in metrics if not METRIC[name].hard]
    headline = result["headline_metric"]
    gain = by_name["edo"]["against_reference"][headline]
    search = result["search"]
    console.print_records(
        f"{result['annotators']} simulated annotators ({result['regime']}), {sizes} items",
        records,
        [
            f"{', '.join(distances)}: distance to the annotators' label distribution.",
            "true CE: to the distribution of everyone's labels, which only a simulator knows.",
            f"EDO keeps {result['ensemble']['size']} of {result['members']} members."
            f" Δ{METRIC[headline].short} vs uniform: {signed(gain['difference'])}",
            f"(95% {signed(gain['low'])} … {signed(gain['high'])}, p = {gain['p_value']:.4f}).",
            f"The paper's search of {search['trials']} trials keeps"
            f" {search['chosen']['size']}; {are(len(search['front']), noun='trial')} on the"
            " front.",
        ],
    )
