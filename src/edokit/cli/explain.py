"""`edo explain`: why members have their weights, what they cost, and what dropping one loses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edokit._errors import InputError, counted, money
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.ensemble.trade_off import TradeOff


@options.streams
@options.reads(options.SPLIT, options.LABELS, options.LEARNING)
def explain(
    ensemble: Annotated[Path, typer.Argument(help="A folder made by `edo fit`.")],
    predictions: Annotated[
        Path | None,
        typer.Option(help="What the ensemble was fitted on: the members' predictions, …"),
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="… and the annotations of these items.")
    ] = None,
    *,
    reading: options.Reading,
    streaming: options.Streaming,
    json: options.Json = False,
) -> None:
    """Show why members have their weights, what they cost, and what dropping one would lose."""
    from edokit.ensemble import EDOEnsemble
    from edokit.ensemble.files import explain_costs
    from edokit.ensemble.trade_off import earned

    loaded = EDOEnsemble.load(ensemble)
    if (predictions is None) != (annotations is None):
        raise InputError(
            "predictions and annotations belong together", "give --predictions and --annotations"
        )
    found: TradeOff | None = None
    if predictions is not None:
        with console.progress() as bars:
            how = streaming.fit_inputs(bars, predictions, reading)
            found = explain_costs(loaded, predictions, annotations, **how)
    fitted = loaded.fitted_
    by_value = earned(fitted)
    if json:
        members = [
            {**one.to_dict(), **fitted.member_info.get(one.member, {})}
            for one in fitted.explanation
        ]
        traded = None if found is None else found.to_dict()
        console.print_json({"members": members, "earned": by_value, "trade_off": traded})
        return
    console.print_lines(map(str, fitted.explanation))
    if by_value:
        _print_earned(by_value)
    if found is not None:
        _print_trade_off(found, {one.member: one.weight for one in fitted.explanation})
    else:
        console.print_lines(
            [
                "What dropping a member would lose needs --predictions and --annotations, those of"
                " the fit."
            ]
        )


def _print_earned(by_value: dict[str, list[dict[str, Any]]]) -> None:
    console.print_table(
        "What each model, prompt and persona earns",
        ["", "members", "with weight", "weight", "cost per item"],
        [
            [
                f"{kind} {'(none)' if row['value'] is None else row['value']}"[:60],
                str(row["members"]),
                str(row["with_weight"]),
                f"{row['weight']:.3f}",
                money(row["cost"]),
            ]
            for kind, rows in by_value.items()
            for row in rows
        ],
        ["cost per item: of its members that carry weight, in the unit of the prices."],
    )


def _print_trade_off(found: TradeOff, weights: dict[str, float]) -> None:
    from edokit.ensemble.trade_off import VERDICTS, signed
    from edokit.metrics import METRIC

    short = METRIC[found.metric].short
    console.print_table(
        f"Without one {found.unit}, the weights solved again",
        [found.unit, "weight", "saves per item", f"Δ{short}", ""],
        [
            [
                one.dropped[0],
                f"{weights.get(one.dropped[0], 0.0):.3f}",
                money(found.saved(one)),
                signed(one),
                VERDICTS[one.verdict],
            ]
            for one in found.drops
        ],
        ["free to drop: worse by 1% at most, interval included; each alone, not several at once."],
    )
    console.print_table(
        "Ever cheaper ensembles",
        ["dropped", "left", "cost per item", short, f"Δ{short}", ""],
        [
            [
                one.dropped[-1] if one.dropped else "nothing",
                counted(len(one.members), found.unit),
                money(one.cost),
                f"{one.loss:.4f}",
                signed(one) if one.dropped else "",
                VERDICTS[one.verdict] if one.dropped else "",
            ]
            for one in found.path
        ],
        found.summary,
    )
