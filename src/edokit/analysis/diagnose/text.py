"""A diagnosis as the lines of ``edo diagnose``; the words are in ``assets``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from edokit._errors import counted
from edokit.analysis.diagnose.groups.text import group_lines

if TYPE_CHECKING:
    from edokit.analysis.diagnose.result import Diagnosis

# With fewer labels, an annotator's agreement with the others says little.
_FEWEST_LABELS = 10
# Up to this many annotators are all listed; of more, those who agree least.
_MOST_LISTED = 12
_LEAST_AGREEING_LISTED = 5


def render_lines(
    template: str,
    *,
    package: str = "edokit.analysis.diagnose",
    filters: Mapping[str, object] | None = None,
    **content: object,
) -> list[str]:
    """Render a template in the ``assets`` of a package, line by line."""
    environment = Environment(
        loader=PackageLoader(package, "assets"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A name may contain a line break, which must not end a line of the diagnosis.
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


def lines(diagnosis: Diagnosis) -> list[str]:
    """Coverage, agreement, annotators, groups, variance, test, advice and limits, line by line."""
    scale = diagnosis.answer_scale
    compared = [person for person in diagnosis.per_annotator if person["agreement"] is not None]
    ranked = compared
    if len(compared) > _MOST_LISTED:
        ranked = _least_agreeing(compared, diagnosis.agreement["pairwise"])
    shares = list(diagnosis.balance["shares"].values())
    mean = None
    if scale.positions is not None:
        mean = sum(
            position * share for position, share in zip(scale.positions, shares, strict=True)
        )
    return render_lines(
        "diagnosis.txt",
        **diagnosis.to_dict(),
        span=scale.span,
        positions=scale.positions,
        is_binary=scale.is_binary(len(shares)),
        mean=mean,
        compared=compared,
        ranked=ranked,
        fewest=_FEWEST_LABELS,
        group_lines=[] if diagnosis.groups is None else group_lines(diagnosis.groups),
    )


def _least_agreeing(people: list[dict[str, Any]], pairwise: float) -> list[dict[str, Any]]:
    """The annotators who agree with the others least, compared with how much those agree.

    ``pairwise`` is the agreement of all pairs of labels. A difference counts the more, the more
    labels it rests on.
    """

    def surplus(person: dict[str, Any]) -> float:
        expected = person["expected"]
        if expected is None:
            expected = pairwise
        return float((person["agreement"] - expected) * person["annotations"] ** 0.5)

    with_enough = [person for person in people if person["annotations"] >= _FEWEST_LABELS]
    return sorted(with_enough, key=surplus)[:_LEAST_AGREEING_LISTED]
