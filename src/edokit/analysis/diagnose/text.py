"""A diagnosis as the lines of ``edo diagnose``; the words are in ``assets``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from edokit._errors import counted
from edokit.analysis.diagnose.groups.result import GroupComparison
from edokit.analysis.diagnose.groups.text import group_lines
from edokit.scales import DeclaredScale

# Labels from which on the agreement of an annotator with the others says something.
_FEWEST = 10


def render_lines(
    template: str,
    *,
    package: str = "edokit.analysis.diagnose",
    filters: Mapping[str, object] | None = None,
    **content: object,
) -> list[str]:
    """The lines that a template in the ``assets`` of a package makes of its content."""
    environment = Environment(
        loader=PackageLoader(package, "assets"),
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
        **(filters or {}),
    }
    text = environment.get_template(template).render(content)
    return [line.replace("\0", "\n") for line in text.rstrip("\n").split("\n")]


def lines(content: dict[str, Any], groups: GroupComparison | None = None) -> list[str]:
    """Coverage, agreement, annotators, groups, variance, test, advice and limits, line by line."""
    scale = DeclaredScale(content["scale"]).resolve(content["classes"])
    compared = [person for person in content["people"] if person["agreement"] is not None]
    shares = content["balance"]["shares"].values()
    return render_lines(
        "diagnosis.txt",
        **content,
        span=scale.span,
        positions=scale.positions,
        is_binary=scale.is_binary(len(shares)),
        mean=sum(at * share for at, share in zip(scale.positions or (), shares, strict=False)),
        compared=compared,
        ranked=compared if len(compared) <= 12 else _least_agreeing(compared, content),
        fewest=_FEWEST,
        group_lines=[] if groups is None else group_lines(groups),
    )


def _least_agreeing(people: list[dict[str, Any]], content: dict[str, Any]) -> list[dict[str, Any]]:
    """The five who agree least with the others, given what others agree on the same items."""

    def standing(person: dict[str, Any]) -> float:
        expected = person["expected"]
        expected = content["agreement"]["pairwise"] if expected is None else expected
        return float((person["agreement"] - expected) * person["annotations"] ** 0.5)

    return sorted((row for row in people if row["annotations"] >= _FEWEST), key=standing)[:5]
