"""`edo predict`: pooled probabilities of new items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from edokit._errors import counted, money
from edokit.cli import console, options
from edokit.predict import PredictOptions, Predictor


def predict(
    ensemble: options.Argument,
    /,
    *,
    out: Path,
    inputs: Annotated[PredictOptions, options.FLAT] = PredictOptions(),
    loading: Annotated[options.Loading, options.FLAT] = options.Loading(),
    spending: Annotated[options.Spending, options.FLAT] = options.Spending(),
    overwrite: options.Overwrite = False,
    reading: Annotated[options.TextReading, options.FLAT] = options.TextReading(),
    json: options.Json = False,
) -> None:
    """Pool the members' predictions: probabilities, entropy, spread and a label.

    Parameters
    ----------
    ensemble : Path
        A folder made by `edo fit` or `edo run`, RUN/ensemble of a search, or a bundle.
    out : Path
        The probabilities: .csv, .tsv, .parquet or .jsonl.
    """
    from edokit.members.spending import session
    from edokit.runs.folder import output_files

    predictor = Predictor(ensemble, inputs, reading.source, **options.given_arguments(loading))
    files = [ensemble / "ensemble.json", *inputs.files]
    with (
        output_files(out, inputs=files, overwrite=overwrite),
        session(budget=spending.budget, allow_http=spending.allow_http) as requests,
    ):
        if predictor.lists_panels:
            panels = predictor.write_panels(out)
        elif len(predictor.panels) == 2:
            comparison = predictor.compare(out)
        else:
            result = predictor.write(out)
    if predictor.lists_panels:
        values = {"out": str(out), **panels.to_dict()}
        console.print_result(values, lambda: console.print_tables(*panels.to_table(str(out))), json)
        return
    if len(predictor.panels) == 2:
        values = {"out": str(out)} | comparison.summary()
        console.print_result(values, lambda: console.print_panels(comparison, str(out)), json)
        return
    if predictor.escalation is not None:
        result["escalation"] = predictor.escalation.to_dict()
    if requests.budget.spent:
        result["cost"] = requests.budget.spent
    console.print_result(result, "; ".join(_notes(result, predictor)), json)


def _notes(result: dict[str, Any], predictor: Predictor) -> Iterator[str]:
    """What was written, whose answers these are, what requests cost, and what to review."""
    yield _rows(result)
    if "unfamiliar" in result:
        policy = predictor.options.unfamiliar
        if policy is None and predictor.escalation is not None:
            policy = "people"
        yield _unfamiliar(result["unfamiliar"], policy)
    elif predictor.options.predictions is None:
        from edokit.bundle import NO_FAMILIARITY

        yield f"how familiar texts are is not known: {NO_FAMILIARITY}"
    for panel in predictor.panels:
        yield f"what {panel} would answer"
    if "cost" in result:
        yield f"requests cost {money(result['cost'])}"
    if metric := predictor.options.answer_for:
        step = predictor.ensemble.answer_step(metric)
        yield f"p_… are answers for {metric}, all else describes the pool: {step}"
    if "people" in result:
        yield _decisions(result)
    if predictor.escalation is not None:
        yield str(predictor.escalation)
    if "review" in result:
        yield _review(result["review"], predictor.options.review or result["review"]["items"])


def _decisions(result: dict[str, Any]) -> str:
    """How many items are answered, and how many are for people."""
    from edokit.ensemble.escalation import shares_sentence

    return shares_sentence(result["people"] / result["items"])


def _unfamiliar(count: int, policy: str | None) -> str:
    """How many texts are unlike those of the fit, and what they got."""
    if not count:
        return "no text is unfamiliar"
    texts = f"{counted(count, 'unfamiliar text')}"
    if policy == "answer":
        return f"{texts}, answered like the others"
    if policy == "constant":
        return f"{texts} with the constant answer"
    if policy == "people":
        return f"{texts} for people"
    return f"{texts}; unreadable texts get the average answer"


def _rows(result: dict[str, Any]) -> str:
    """How many items, or pairs of them and annotators, were predicted."""
    rows = counted(result["items"], "item")
    if "pairs" in result:
        rows = f"{counted(result['pairs'], 'pair')} of {rows} and their anonymous answers"
    return (
        f"{result['out']}: {rows}, mean entropy {result['entropy']:.4f},"
        f" mean spread {result['spread']:.4f}"
    )


def _review(queue: dict[str, Any], requested: int) -> str:
    """Where the items to review are."""
    items = f"the {counted(queue['items'], 'item')}"
    if queue["items"] < requested:
        items = f"all {counted(queue['items'], 'item')}"
    repeated = ""
    if "again" in queue:
        repeated = f" ({queue['again']} of them have labels already)"
    return (
        f"{items} to review{repeated}, most urgent first, for Label Studio: {queue['out']}"
        f" (interface: {queue['config']})"
    )
