"""Answers of several panels for the same items: rows for a file, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from edokit._errors import counted, signed
from edokit._io.markup import Cell, Table
from edokit._types import Floats
from edokit.annotations.people import FEW_PEOPLE, few_people_sentence
from edokit.ensemble.estimator import EDOEnsemble
from edokit.ensemble.pooled import Pooled
from edokit.ensemble.views import answer_for_panel
from edokit.panels import Panel

ANONYMOUS_PANEL = "anonymous"
"""The name of the anonymous answer in the column of panels."""
_DIVIDED_ITEMS = 5
"""Number of items that are listed because panels differ most about them."""


@dataclass(frozen=True)
class DividedItem:
    """An item about which two panels differ.

    Attributes
    ----------
    item : str
        Its id.
    first_panel, second_panel : str
        The two panels whose answers are farthest apart, in the order of the panels.
    distance : float
        Their distance: Wasserstein-1 on an ordinal scale, else half the L1 distance.
    """

    item: str
    first_panel: str
    second_panel: str
    distance: float

    def to_dict(self) -> dict[str, object]:
        """Return the fields under their names in files; neither answer need be the lower one."""
        return {
            "item": self.item,
            "low_panel": self.first_panel,
            "high_panel": self.second_panel,
            "distance": self.distance,
        }


class PanelTable:
    """Answers of several panels for the same items, added up part by part.

    Parameters
    ----------
    ensemble : EDOEnsemble
        A fitted ensemble with effects of people.
    panels : sequence of Panel
        The panels that answer.
    answer_for : str, default=None
        Answers for this metric instead of the pool.
    """

    def __init__(
        self, ensemble: EDOEnsemble, panels: Sequence[Panel], answer_for: str | None = None
    ) -> None:
        assert ensemble.people_ is not None
        self._people = ensemble.people_
        self._scale = ensemble.scale_
        self._classes = ensemble.fitted_.classes
        self._panels = panels
        self._step = None
        if answer_for is not None:
            self._step = ensemble.answer_step(answer_for)
        self._n_items = 0
        self._sums = np.zeros((len(panels) + 1, len(self._classes)))
        self._divided: list[DividedItem] = []

    def tables(self, parts: Iterable[Pooled]) -> Iterator[pa.Table]:
        """Yield the rows of the anonymous answer and of every panel, for each part of the items."""
        for anonymous in parts:
            answers = []
            for panel in self._panels:
                answers.append(answer_for_panel(anonymous, self._people, panel, self._step))
            self._add(anonymous, answers)
            yield _with_panel(anonymous, ANONYMOUS_PANEL)
            for panel, answer in zip(self._panels, answers, strict=True):
                yield _with_panel(answer, panel.name)

    def _add(self, anonymous: Pooled, answers: Sequence[Pooled]) -> None:
        """Add the answers for further items to the means and to the most divided items."""
        self._n_items += len(anonymous.items)
        for row, answer in enumerate([anonymous, *answers]):
            self._sums[row] += answer.answer.sum(axis=0)
        if len(answers) < 2:
            return
        n_panels = len(answers)
        coordinates = np.stack([self._scale.coordinates(row.answer[:, None]) for row in answers])
        differences = np.abs(coordinates[:, None] - coordinates[None])
        # [panel, panel, item]
        distances = differences.reshape(n_panels, n_panels, len(anonymous.items), -1).sum(axis=3)
        if self._scale.steps is None:
            distances = distances / 2
        largest = distances.max(axis=(0, 1))
        for position in np.argsort(-largest, kind="stable")[:_DIVIDED_ITEMS]:
            farthest = int(distances[:, :, position].argmax())
            first_panel = farthest // n_panels
            second_panel = farthest % n_panels
            self._divided.append(
                DividedItem(
                    item=str(anonymous.items[position]),
                    first_panel=self._panels[first_panel].name,
                    second_panel=self._panels[second_panel].name,
                    distance=float(largest[position]),
                )
            )
        self._divided.sort(key=lambda divided: -divided.distance)
        del self._divided[_DIVIDED_ITEMS:]

    @property
    def means(self) -> Floats:
        """Mean answers over items [P + 1, C]: first the anonymous answer, then those of panels."""
        return self._sums / max(self._n_items, 1)

    def to_dict(self) -> dict[str, object]:
        """Return the number of items, mean answers, and the items that divide panels most."""
        panels: list[dict[str, object]] = []
        names = [ANONYMOUS_PANEL, *(panel.name for panel in self._panels)]
        counts = [None, *(len(panel.annotators) for panel in self._panels)]
        for name, people, mean in zip(names, counts, self.means, strict=True):
            entry: dict[str, object] = {"panel": name, "people": people}
            entry["mean"] = dict(zip(self._classes, mean.tolist(), strict=True))
            if self._scale.positions is not None:
                entry["expected"] = float(self._scale.expected(mean))
            panels.append(entry)
        return {
            "items": self._n_items,
            "panels": panels,
            "divided": [divided.to_dict() for divided in self._divided],
        }

    def to_table(self, out: str) -> list[Table]:
        """Return a table of mean answers, and one of the items about which panels differ most."""
        anonymous = self.means[0]
        names = [ANONYMOUS_PANEL, *(str(panel) for panel in self._panels)]
        records = []
        for name, mean in zip(names, self.means, strict=True):
            record: dict[str, Cell] = {"panel": name}
            if self._scale.positions is not None:
                record["expected point"] = float(self._scale.expected(mean))
                record["against anonymous"] = signed(float(self._scale.expected(mean - anonymous)))
            else:
                for c, label in enumerate(self._classes):
                    record[f"share of {label}"] = float(mean[c])
            records.append(record)
        note = (
            f"Mean answers of {counted(self._n_items, 'item')}; a row per item and panel: {out}."
            " Whether groups of annotators really differ is what `edo diagnose --by` tests."
        )
        notes = [note]
        small = []
        for panel in self._panels:
            if len(panel.annotators) < FEW_PEOPLE and not panel.is_person:
                small.append(panel.name)
        if small:
            notes.append(few_people_sentence(small))
        result_tables = [Table.from_records("Whose view?", records, notes, digits=3)]
        if self._divided:
            divided = []
            for entry in self._divided:
                divided.append(
                    {
                        "item": entry.item,
                        "panels": f"{entry.first_panel} and {entry.second_panel}",
                        "distance": entry.distance,
                    }
                )
            result_tables.append(
                Table.from_records("Items that divide the panels most", divided, [], digits=3)
            )
        return result_tables


def _with_panel(pooled: Pooled, name: str) -> pa.Table:
    """The table of pooled answers with a column for the panel, and always with intervals."""
    low = pooled.low
    high = pooled.high
    if low is None or high is None:
        low = np.full_like(pooled.answer, np.nan)
        high = np.full_like(pooled.answer, np.nan)
    table = replace(pooled, low=low, high=high).to_table()
    return table.add_column(1, "panel", pa.array([name] * table.num_rows))
