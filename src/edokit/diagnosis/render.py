"""A diagnosis as the lines of ``edo diagnose``; the words are in ``assets/diagnosis.txt``."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from edokit._errors import counted
from edokit.scales import Declared, Scale

_FEWEST = 10
"""Labels from which on the agreement of an annotator with the others says something."""
_PARTS = {
    "item": "items",
    "annotator": "annotators",
    "group_item": "groups by items",
    "rest": "rest: noise, single views",
}
_TESTS = {
    "annotator": "annotators",
    "group_item": "groups by items",
    "views": "groups beyond strictness",
}


def lines(content: dict[str, Any]) -> list[str]:
    """Coverage, agreement, annotators, groups, variance, test, advice and limits, line by line."""
    scale = Declared(content["scale"]).on(content["classes"])
    compared = [person for person in content["people"] if person["agreement"] is not None]
    overall = content["agreement"]["pairwise"]
    environment = Environment(
        loader=PackageLoader("edokit.diagnosis", "assets"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A name may hold a line break, which does not end a line of the diagnosis.
        finalize=lambda value: str(value).replace("\n", "\0"),
    )
    environment.filters |= {
        "as": lambda value, form: "–" if value is None else f"{value:{form}}",
        "quoted": repr,
        "trimmed": str.rstrip,
        "counted": counted,
        "span": _span,
        "ends": lambda part: f"[{part['low']:.1%}, {part['high']:.1%}]",
        "choice": lambda person: _choice(person, scale),
        "agreed": lambda agreement: _agreed(agreement, scale),
        "beyond": lambda agreement: _beyond(agreement, scale),
    }
    text = environment.get_template("diagnosis.txt").render(
        content | {"explained": content.get("explained")},
        scale=scale,
        positions=scale.positions,
        mean=_mean(content["balance"]["shares"], scale),
        compared=compared,
        ranked=compared if len(compared) <= 12 else _least_agreeing(compared, overall),
        fewest=_FEWEST,
        parts=_PARTS,
        tests=_p_values(content["test"]),
    )
    return [line.replace("\0", "\n") for line in text.rstrip("\n").split("\n")]


def _mean(shares: dict[str, float], scale: Scale) -> float:
    return sum(
        place * share for place, share in zip(scale.positions or (), shares.values(), strict=False)
    )


def _least_agreeing(people: list[dict[str, Any]], overall: float) -> list[dict[str, Any]]:
    """The five who agree least with the others, given what others agree on the same items."""

    def standing(person: dict[str, Any]) -> float:
        expected = overall if person["expected"] is None else person["expected"]
        return float((person["agreement"] - expected) * person["annotations"] ** 0.5)

    return sorted((row for row in people if row["annotations"] >= _FEWEST), key=standing)[:5]


def _p_values(test: dict[str, Any] | None) -> dict[str, float]:
    if test is None or test["p"] is None:
        return {}
    values = {title: test[key]["p"] for key, title in _TESTS.items()}
    return {"any structure": test["p"]} | {t: p for t, p in values.items() if p is not None}


def _agreed(agreement: float, scale: Scale) -> str:
    """``81%``, or on a scale the distance: ``1.20 apart``."""
    return f"{agreement:.0%}" if scale.span is None else f"{(1 - agreement) * scale.span:.2f} apart"


def _choice(person: dict[str, Any], scale: Scale) -> str:
    """Of two classes the share of the last, of more the most frequent one; on a scale the mean."""
    shares = person["shares"]
    if person["mean"] is not None:
        return f"mean {person['mean']:.2f}"
    two = scale.is_binary(len(shares))
    name = list(shares)[-1] if two else max(shares, key=shares.__getitem__)
    return f"{'' if two else 'most often '}{name!r} {shares[name]:.0%}"


def _beyond(agreement: float | None, scale: Scale) -> str:
    if agreement is None:
        return "–"
    return f"{agreement:+.1%}" if scale.span is None else f"{-agreement * scale.span:+.2f}"


def _span(figures: dict[str, Any]) -> str:
    low, high = figures["min"], figures["max"]
    return f"{low}" if low == high else f"{low}–{high} (median {figures['median']:g})"
