"""The table made of coefficients of agreement."""

from __future__ import annotations

from collections.abc import Mapping

from edokit._io.markup import Cell, Table

COEFFICIENT_TITLES = {
    "krippendorff_alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "Cohen's kappa (mean of pairs)",
    "gwet_ac1": "Gwet's AC1",
    "gwet_ac2": "Gwet's AC2",
}


def coefficient_table(
    coefficients: Mapping[str, Mapping[str, float | None] | None], weights: str, level: float
) -> Table:
    """A row for each coefficient that is defined, with its interval."""
    records: list[dict[str, Cell]] = []
    for name, title in COEFFICIENT_TITLES.items():
        value = coefficients[name]
        if value is not None and value["estimate"] is not None:
            records.append({"coefficient": title, **value})
    note = f"{100 * level:g} % intervals over items; {weights} weights."
    return Table.from_records("Agreement beyond chance", records, [note], digits=3)
