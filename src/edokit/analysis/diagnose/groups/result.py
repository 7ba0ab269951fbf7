"""The result of comparing groups of people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from edokit.analysis.sequential import Verdict

if TYPE_CHECKING:
    import pyarrow as pa

AnswerPoint: TypeAlias = "float | dict[str, float] | None"
"""Points on an ordinal scale, else shares by class (of each label, for multi-label data)."""


@dataclass(frozen=True)
class LevelComparison:
    """One level of an attribute against all people with another level of it.

    Attributes
    ----------
    attribute, level : str
        As in gender, woman.
    people : int
        How many annotators have this level.
    labels : int
        How many labels they gave.
    mean : float or dict
        Their mean answer, over their labels: points on an ordinal scale, else shares by class.
    difference, low, high : float, dict or None
        How much higher their answers are than those of the others on the same items, with a 95 %
        interval over people and items; None where the labels can't show it.
    p : float or None
        P-value of the permutation test; None where none was made.
    p_adjusted : float or None
        ``p``, corrected by Holm's procedure for all tests that were made; every attribute has the
        same share of the 5 %.
    p_low, p_high : float or None
        Interval of ``p``: the permutations are a sample of all possible ones.
    differs : {"yes", "no", "can't tell"} or None
        Whether a difference is shown at 5 % after correction; "can't tell" if the largest number of
        permutations does not decide it.
    missed : float or None
        The largest difference that the interval allows, in any class, whatever its direction.
    few_people : bool
        Whether fewer than five people have this level.
    reason : str or None
        Why the level is not compared; None if it is.
    """

    attribute: str
    level: str
    people: int
    labels: int
    mean: AnswerPoint
    difference: AnswerPoint = None
    low: AnswerPoint = None
    high: AnswerPoint = None
    p: float | None = None
    p_adjusted: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    differs: Verdict | None = None
    missed: float | None = None
    few_people: bool = False
    reason: str | None = None

    @property
    def name(self) -> str:
        """Attribute and level, as a panel is asked for."""
        return f"{self.attribute}={self.level}"


@dataclass(frozen=True)
class DividingItem:
    """An item about which people of one level and the others answer differently.

    Attributes
    ----------
    attribute, level : str
        The level that is farthest from the others.
    item : str
    mean, others : float or dict
        Mean answers of the level and of the others.
    labels, other_labels : int
        How many labels these are.
    difference : float or dict
        The difference, shrunk towards that of all items: the more, the fewer labels there are.
    """

    attribute: str
    level: str
    item: str
    mean: AnswerPoint
    others: AnswerPoint
    labels: int
    other_labels: int
    difference: AnswerPoint


@dataclass(frozen=True)
class GroupComparison:
    """Do groups differ? What `edokit.diagnose` finds with ``by``.

    Attributes
    ----------
    levels : tuple of LevelComparison
        Every level of every attribute.
    items : tuple of DividingItem
        The items that divide the levels of each attribute most.
    item_spread : mapping of str to float
        By attribute, the standard deviation between items, beyond chance, of the differences of the
        level where it is largest; 0 if the items that divide most divide no more than chance does.
    unknown : mapping of str to int
        By attribute, the number of annotators whose level is not known; they are left out.
    notes : mapping of str to str
        By attribute, how its values became levels, where they are not levels themselves.
    tests : int
        How many tests were made, and corrected for. An attribute with two levels has one test.
    permutations : int
        The most permutations that a test needed.
    scale : str
        nominal, ordinal or multi-label.
    classes : tuple of str
    seed : int
    """

    levels: tuple[LevelComparison, ...]
    items: tuple[DividingItem, ...]
    item_spread: Mapping[str, float]
    unknown: Mapping[str, int]
    notes: Mapping[str, str]
    tests: int
    permutations: int
    scale: str
    classes: tuple[str, ...]
    seed: int
    correction: str = field(default="holm", init=False)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that were compared."""
        return tuple(dict.fromkeys(level.attribute for level in self.levels))

    @property
    def has_points(self) -> bool:
        """Whether answers are points of an ordinal scale; else they are shares by class."""
        return self.scale == "ordinal"

    @property
    def is_binary(self) -> bool:
        """Whether there are two exclusive classes, so that the share of one says all."""
        return self.scale == "nominal" and len(self.classes) == 2

    def levels_of(self, attribute: str) -> tuple[LevelComparison, ...]:
        """Return the levels of one attribute."""
        return tuple(level for level in self.levels if level.attribute == attribute)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values.

        Returns
        -------
        dict
            ``groups`` (the levels), ``dividing_items`` and ``group_tests``: how many tests, which
            correction, permutations and seed.
        """
        return {
            "groups": [asdict(level) for level in self.levels],
            "dividing_items": [asdict(item) for item in self.items],
            "group_tests": {
                "tests": self.tests,
                "correction": self.correction,
                "permutations": self.permutations,
                "seed": self.seed,
                "unknown": dict(self.unknown),
                "notes": dict(self.notes),
                "item_spread": dict(self.item_spread),
                "scale": self.scale,
                "classes": list(self.classes),
            },
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GroupComparison:
        """Return the comparison that `to_dict` wrote."""
        tests = content["group_tests"]
        return cls(
            levels=tuple(LevelComparison(**entry) for entry in content["groups"]),
            items=tuple(DividingItem(**entry) for entry in content["dividing_items"]),
            item_spread=tests["item_spread"],
            unknown=tests["unknown"],
            notes=tests["notes"],
            tests=tests["tests"],
            permutations=tests["permutations"],
            scale=tests["scale"],
            classes=tuple(tests["classes"]),
            seed=tests["seed"],
        )

    def to_table(self) -> pa.Table:
        """Return a row per level and class (per level on an ordinal scale).

        Returns
        -------
        pyarrow.Table
            Columns ``attribute, level, people, labels, class, mean, difference, low, high, p,
            p_adjusted, differs``.
        """
        import pyarrow as pa

        rows = []
        for level in self.levels:
            class_names: tuple[str, ...] = ("",)
            if isinstance(level.mean, dict):
                class_names = self.classes
            for name in class_names:
                row: dict[str, Any] = {
                    "attribute": level.attribute,
                    "level": level.level,
                    "people": level.people,
                    "labels": level.labels,
                    "class": name,
                }
                for key in ("mean", "difference", "low", "high"):
                    row[key] = value_of(getattr(level, key), name)
                row["p"] = level.p
                row["p_adjusted"] = level.p_adjusted
                row["differs"] = level.differs
                rows.append(row)
        return pa.Table.from_pylist(rows)


def value_of(answer: AnswerPoint, name: str) -> float | None:
    """Return the share of a class, or the point on an ordinal scale."""
    if isinstance(answer, dict):
        return answer.get(name)
    return answer
