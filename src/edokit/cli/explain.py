"""`edo explain`: why members have their weights, what they cost, and what dropping one loses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from edokit._errors import InputError, counted, money
from edokit.cli import console, options

if TYPE_CHECKING:
    from edokit.ensemble.trade_off import TradeOff


def explain(
    ensemble: options.Argument,
    /,
    *,
    predictions: Path | None = None,
    annotations: Path | None = None,
    reading: Annotated[options.FitReading, options.FLAT] = options.FitReading(),
    streaming: Annotated[options.Streaming, options.FLAT] = options.Streaming(),
    json: options.Json = False,
) -> None:
    """Show why members have their weights, what they cost, and what each one adds.

    Parameters
    ----------
    ensemble : Path
        A folder made by `edo fit`.
    predictions : Path, optional
        What the ensemble was fitted on: the members' predictions, …
    annotations : Path, optional
        … and the annotations of these items.
    """
    from edokit.ensemble import EDOEnsemble
    from edokit.ensemble.files import explain_costs
    from edokit.ensemble.trade_off import earned

    loaded = EDOEnsemble.load(ensemble)
    if (predictions is None) != (annotations is None):
        raise InputError(
            "predictions and annotations belong together", "give --predictions and --annotations"
        )
    trade_off: TradeOff | None = None
    if predictions is not None:
        with console.progress() as bars:
            inputs = streaming.fit_arguments(bars, predictions, reading)
            trade_off = explain_costs(loaded, predictions, annotations, **inputs)
    fitted = loaded.fitted_
    by_value = earned(fitted)
    if json:
        members = [
            {**reason.to_dict(), **fitted.member_info.get(reason.member, {})}
            for reason in fitted.explanation
        ]
        costs = None if trade_off is None else trade_off.to_dict()
        console.print_json({"members": members, "earned": by_value, "trade_off": costs})
        return
    console.print_lines(map(str, fitted.explanation))
    if by_value:
        _print_earned(by_value)
    if trade_off is not None:
        weights = {reason.member: reason.weight for reason in fitted.explanation}
        _print_drops(trade_off, weights)
        _print_path(trade_off)
    else:
        console.print_lines(
            [
                "What dropping a member would lose needs --predictions and --annotations, those of"
                " the fit."
            ]
        )


def _print_earned(by_value: dict[str, list[dict[str, Any]]]) -> None:
    console.print_records(
        "What each model, prompt and persona earns",
        [
            {
                "": f"{kind} {'(none)' if row['value'] is None else row['value']}"[:60],
                "members": row["members"],
                "with weight": row["with_weight"],
                "weight": f"{row['weight']:.3f}",
                "cost per item": money(row["cost"]),
            }
            for kind, rows in by_value.items()
            for row in rows
        ],
        ["cost per item: of its members that carry weight, in the unit of the prices."],
    )


def _print_drops(trade_off: TradeOff, weights: dict[str, float]) -> None:
    from edokit.ensemble.trade_off import VERDICTS, signed
    from edokit.metrics import METRIC

    console.print_records(
        f"Without one {trade_off.unit}, the weights solved again",
        [
            {
                trade_off.unit: drop.dropped[0],
                "weight": f"{weights.get(drop.dropped[0], 0.0):.3f}",
                "saves per item": money(trade_off.saved(drop)),
                f"Δ{METRIC[trade_off.metric].short}": signed(drop),
                "": VERDICTS[drop.verdict],
            }
            for drop in trade_off.drops
        ],
        ["free to drop: worse by 1% at most, interval included; each alone, not several at once."],
    )


def _print_path(trade_off: TradeOff) -> None:
    from edokit.ensemble.trade_off import VERDICTS, signed
    from edokit.metrics import METRIC

    short = METRIC[trade_off.metric].short
    console.print_records(
        "Ever cheaper ensembles",
        [
            {
                "dropped": step.dropped[-1] if step.dropped else "nothing",
                "left": counted(len(step.members), trade_off.unit),
                "cost per item": money(step.cost),
                short: step.loss,
                f"Δ{short}": signed(step) if step.dropped else "",
                "": VERDICTS[step.verdict] if step.dropped else "",
            }
            for step in trade_off.path
        ],
        trade_off.summary,
    )
