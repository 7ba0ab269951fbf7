"""Panels: the answers that a group of annotators would give, with intervals of their votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edokit._errors import InputError, are, counted, examples, headings
from edokit._names import as_names, check_unique, positions
from edokit._types import Bools, Floats, Ints, Strings
from edokit.annotations.core import Annotations
from edokit.annotations.people import unknown_attribute
from edokit.rows import Rows
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    import pyarrow as pa

# Attributes by annotator, as in ``{"ann": {"age": "29"}}``.
Attributes = Mapping[str, Mapping[str, str]]
LEVEL = 0.9
"""Level of the intervals of a panel's votes."""
_QUANTILES = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
_MOST_RAKING_ROUNDS = 500
_ROUNDING = 1e-9
"""Largest difference of shares and weights that counts as rounding."""
_GRID_STEPS = 1000
"""Steps between no votes and all votes of a panel whose weights differ."""
_LARGE_PANEL = 100
"""A panel of more people is treated as drawn from a population."""
_MOST_NUMBERS = 4_000_000
"""Numbers in memory at a time while intervals of votes are computed."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A group of annotators whose joint answer is predicted, with a weight for each.

    Build one from a list of annotators, from shares of attributes with `from_shares`, or from a
    file with `read_panel`.

    Parameters
    ----------
    annotators : tuple of str
        Their ids.
    weights : array of shape (A,), default=None
        The weight of each annotator; equal if None.
    size : int, default=None
        The number of people who answer. If None, these annotators answer; otherwise they describe
        a population, from which ``size`` people are drawn.
    name : str, default="panel"
        The panel's name in tables and messages.

    Examples
    --------
    >>> Panel(("ann", "ben")).weights
    array([0.5, 0.5])
    """

    annotators: tuple[str, ...]
    weights: Any = None
    size: int | None = None
    name: str = "panel"

    def __post_init__(self) -> None:
        hint = "name each of them, as in ('ann', 'ben')"
        if isinstance(self.annotators, str):
            raise InputError(
                f"the annotators of {self.name} are one string, not names",
                hint,
                code="single-value",
            )
        if not self.annotators:
            raise InputError(f"{self.name} has no annotators", hint, code="empty-panel")
        # A panel whose only name is empty stands for anybody: it gets the anonymous answer.
        if "" in self.annotators and len(self.annotators) > 1:
            position = self.annotators.index("") + 1
            raise InputError(
                f"entry {position} of {self.name} names no annotator", hint, code="missing-value"
            )
        check_unique(as_names(self.annotators), f"annotators of {self.name}", "name each once")
        if self.size is not None:
            is_number = isinstance(self.size, Integral) and not isinstance(self.size, bool)
            if not is_number or self.size < 1:
                raise InputError(
                    f"the size of {self.name} is {self.size!r}, but must be a whole number of at"
                    " least 1",
                    "give the number of people who are drawn, or leave it out",
                    code="invalid-number",
                )
        count = len(self.annotators)
        weights = np.ones(count)
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=float)
        total = weights.sum()
        is_valid = np.isfinite(total) and total > 0 and (weights >= 0).all()
        if weights.shape != (count,) or not is_valid:
            raise InputError(
                f"the weights of {self.name} are not {count} numbers of at least 0 with a positive"
                " sum",
                "give one weight per annotator",
                code="invalid-weights",
            )
        object.__setattr__(self, "weights", weights / total)

    def __str__(self) -> str:
        if len(self.annotators) == 1 and self.size is None:
            return self.name
        people = counted(len(self.annotators), "annotator")
        if self.size is not None:
            people += f", {self.size} drawn"
        return f"{self.name} ({people})"

    @classmethod
    def for_person(cls, annotator: str) -> Panel:
        """Return the panel of one annotator, whose name says that it is a person."""
        return cls((annotator,), name=f"annotator {annotator!r}")

    @property
    def is_person(self) -> bool:
        """Whether `for_person` made it, and not a condition that one annotator meets."""
        return self.name == f"annotator {self.annotators[0]!r}"

    @classmethod
    def from_shares(
        cls,
        shares: Mapping[str, Mapping[str, float]],
        annotations: Annotations | Attributes,
        *,
        size: int | None = None,
        name: str = "panel",
    ) -> Panel:
        """Weigh annotators so that each attribute has the given shares (raking).

        Parameters
        ----------
        shares : mapping of str to mapping of str to float
            Share of each value of each attribute, as in ``{"gender": {"f": 0.5, "m": 0.5}}``.
            Values that are not named get the share 0.
        annotations : Annotations or mapping of str to mapping of str to str
            The attributes of the annotators: annotations with ``attributes``, or attributes by
            annotator.
        size : int, default=None
            The number of people who are drawn from this population.
        name : str, default="panel"
            The panel's name in tables and messages.

        Returns
        -------
        Panel

        Raises
        ------
        InputError
            If an attribute or value is unknown, or no weights give all shares.

        Examples
        --------
        >>> rows = {"item": [1, 1, 1], "annotator": ["a", "b", "c"], "label": [0, 1, 1]}
        >>> people = Annotations.from_table({**rows, "age": ["old", "young", "young"]})
        >>> Panel.from_shares({"age": {"old": 0.5, "young": 0.5}}, people).weights
        array([0.5 , 0.25, 0.25])
        """
        if not shares:
            raise InputError(f"{name} names no attributes", "name one", code="empty-option")
        if isinstance(annotations, Annotations):
            annotators = [str(annotator) for annotator in annotations.annotators]
            values_by_attribute = dict(annotations.attributes)
        else:
            annotators = list(annotations)
            table = pd.DataFrame.from_dict(dict(annotations), orient="index").fillna("")
            values_by_attribute = {str(column): table[column].to_numpy() for column in table}
        attributes = []
        for attribute, share_by_value in shares.items():
            if attribute not in values_by_attribute:
                raise unknown_attribute(attribute, values_by_attribute)
            values = np.asarray(values_by_attribute[attribute])
            attributes.append(_groups_by_value(attribute, values, share_by_value))
        weights = _raked_weights(attributes, len(annotators))
        if weights is None:
            raise InputError(
                f"no weights of these annotators fit all shares of {name}",
                "ask for fewer attributes, or check that people with these values exist",
                code="impossible-shares",
            )
        members = np.flatnonzero(weights)
        return cls(tuple(annotators[a] for a in members), weights[members], size, name)

    def mean(self, rows: Rows, values: Floats) -> Floats:
        """Return the panel's mean of values [R, ...] for each item [N, ...].

        The weights of those who answered an item are normalised.
        """
        positions, panel_codes = self._panel_rows(rows)
        return rows.take(positions).mean(values[positions], self.weights[panel_codes])

    def answer(self, rows: Rows, p: Floats) -> PanelAnswer:
        """Return the panel's distribution for each item, from predictions for its annotators.

        Parameters
        ----------
        rows : Rows
            Pairs of an item and an annotator.
        p : array of shape (R, C)
            The probabilities of each row.

        Returns
        -------
        PanelAnswer
        """
        positions, panel_codes = self._panel_rows(rows)
        answered = rows.take(positions)
        mean = answered.mean(p[positions], self.weights[panel_codes])
        if self.size is None:  # these people, each with one answer
            votes = np.zeros((len(mean), len(self.annotators), p.shape[1]))
            weights = np.zeros(votes.shape[:2])
            votes[answered.item_codes, panel_codes] = p[positions]
            weights[answered.item_codes, panel_codes] = self.weights[panel_codes]
            low, high = _vote_interval(votes, weights)
        else:  # people drawn from a population with these shares
            low, high = _drawn_interval(mean, self.size)
        return PanelAnswer(self, answered.by_item(), mean, low, high)

    def weighted_mean(self, values: Floats) -> Floats:
        """Return the panel's mean [N, C] of the answers of its annotators [N, A, C]."""
        return np.asarray(np.einsum("nac,a->nc", values, self.weights))

    def answer_votes(self, rows: Rows, votes: Floats) -> PanelAnswer:
        """Return the panel's distribution for each item, from the answers of all its annotators.

        Parameters
        ----------
        rows : Rows
            The items [N].
        votes : array of shape (N, A, C)
            The probabilities of each annotator's answer.

        Returns
        -------
        PanelAnswer
        """
        mean = self.weighted_mean(votes)
        if self.size is not None:  # people drawn from a population with these shares
            low, high = _drawn_interval(mean, self.size)
        elif len(self.annotators) > _LARGE_PANEL:
            # A safe approximation: votes of these people vary less than those of people drawn.
            low, high = _drawn_interval(mean, len(self.annotators))
        else:
            low, high = _vote_interval(votes, np.tile(self.weights, (len(votes), 1)))
        return PanelAnswer(self, rows, mean, low, high)

    def _panel_rows(self, rows: Rows) -> tuple[Ints, Ints]:
        """The positions of the rows with the panel's annotators, and who each row is about.

        Annotators are numbered as in ``annotators``.
        """
        rows.check_pairs("answers")
        names = rows.columns()["annotator"]
        missing = sorted(set(self.annotators) - set(names))
        if missing:
            raise InputError(
                f"{are(len(missing), len(self.annotators), noun='annotator')} of {self.name}"
                f" without answers: {examples(missing)}",
                "score the items for them, too",
                code="missing-predictions",
            )
        panel_codes = positions(names, as_names(self.annotators))
        in_panel = np.flatnonzero(panel_codes >= 0)
        return in_panel, panel_codes[in_panel]


@dataclass(frozen=True, eq=False)
class PanelAnswer:
    """The answer of a panel, with intervals of the share of its votes for each class.

    Attributes
    ----------
    panel : Panel
    rows : Rows
        The items.
    probabilities : ndarray of shape (N, C)
    low, high : ndarray of shape (N, C)
        Ends of the interval of the share of votes: people vote for one class, so that shares of a
        finite panel vary although the probabilities are the same.
    """

    panel: Panel
    rows: Rows
    probabilities: Floats
    low: Floats
    high: Floats

    @property
    def items(self) -> Strings:
        """Item ids [N]."""
        return self.rows.items

    def align(self, rows: Rows, against: str) -> PanelAnswer:
        """Return the answers to these items, in this order."""
        order = self.rows.match(rows, self.panel.name, against)
        return PanelAnswer(
            self.panel, rows, self.probabilities[order], self.low[order], self.high[order]
        )


@dataclass(frozen=True, eq=False)
class PanelComparison:
    """The answers of two panels to the same items, side by side.

    Made by `edokit.ensemble.reviews.compare_panels`.

    Attributes
    ----------
    first, second : PanelAnswer
    classes : tuple of str
        Class names [C].
    scale : Scale
        The answer scale.
    anonymous : PanelAnswer or None
        The anonymous answers, if the members gave them.
    """

    first: PanelAnswer
    second: PanelAnswer
    classes: tuple[str, ...]
    scale: Scale = NOMINAL
    anonymous: PanelAnswer | None = None

    def __post_init__(self) -> None:
        name = self.first.panel.name
        if name == self.second.panel.name:
            raise InputError(
                f"both panels are called {name!r}",
                "give their files different names",
                code="duplicate-name",
            )
        rows = self.first.rows
        object.__setattr__(self, "second", self.second.align(rows, name))
        if self.anonymous is not None:
            object.__setattr__(self, "anonymous", self.anonymous.align(rows, name))

    @property
    def answers(self) -> tuple[PanelAnswer, ...]:
        """The answers of both panels, then the anonymous answers if there are any."""
        panels = (self.first, self.second)
        if self.anonymous is None:
            return panels
        return (*panels, self.anonymous)

    @cached_property
    def distances(self) -> Floats:
        """The distance of the two panels on each item [N].

        The L1 distance; for multi-label data, its mean over labels; for an ordinal scale, the
        Wasserstein-1 distance in units of the scale.
        """
        first_coordinates = self.scale.coordinates(self.first.probabilities)
        second_coordinates = self.scale.coordinates(self.second.probabilities)
        return np.asarray(np.abs(first_coordinates - second_coordinates).sum(axis=1))

    @cached_property
    def order(self) -> Ints:
        """Positions of the items [N], by decreasing distance of the panels."""
        return np.argsort(-self.distances, kind="stable")

    @cached_property
    def labels(self) -> tuple[Strings, ...]:
        """The decision of each of the `answers`: the likeliest class, or the labels above 0.5."""
        labels = []
        for answer in self.answers:
            labels.append(self.scale.names(self.scale.hard(answer.probabilities), self.classes))
        return tuple(labels)

    @property
    def decisions_differ(self) -> Bools:
        """Whether the decisions of the panels differ [N]."""
        return np.asarray(self.labels[0] != self.labels[1], dtype=bool)

    @property
    def beyond_chance(self) -> Bools:
        """Whether the intervals of both panels' votes are disjoint for some class [N].

        Then chance alone, in which class each person votes for, hardly explains the difference.
        With few votes per item such items are rare, whether or not the panels differ: their number
        is not a test. `edokit.diagnose` with ``by`` tests whether groups of annotators differ.
        """
        disjoint = (self.first.low > self.second.high) | (self.second.low > self.first.high)
        return np.asarray(disjoint.any(axis=1))

    def summary(self) -> dict[str, Any]:
        """Return how much the panels differ over all items.

        Returns
        -------
        dict
            ``items``; ``panels`` with the size of each; the mean ``distance``; on how many items
            ``decisions_differ``, and how many differ ``beyond_chance``; ``follows``: among items
            where decisions differ, how many anonymous answers agree with each panel (None without
            anonymous answers); ``level`` of the intervals.
        """
        differ = self.decisions_differ
        panels = [self.first.panel, self.second.panel]
        follows = None
        if self.anonymous is not None:
            follows = {}
            for panel, labels in zip(panels, self.labels[:2], strict=True):
                follows[panel.name] = int((differ & (self.labels[2] == labels)).sum())
            follows["neither"] = int(differ.sum()) - sum(follows.values())
        return {
            "items": len(self.first.items),
            "panels": {panel.name: len(panel.annotators) for panel in panels},
            "distance": float(self.distances.mean()),
            "decisions_differ": int(differ.sum()),
            "beyond_chance": int(self.beyond_chance.sum()),
            "follows": follows,
            "level": LEVEL,
        }

    def to_table(self) -> pa.Table:
        """One row per item, by decreasing distance of the panels.

        The columns are ``item``, ``distance`` and ``beyond_chance``; for each panel, and for
        ``anonymous``, columns with its name in parentheses: ``label (…)``, ``p_<class> (…)`` and,
        for panels, the ends of the interval of its votes, ``low_<class> (…)`` and
        ``high_<class> (…)``.
        """
        import pyarrow as pa

        order = self.order
        columns: dict[str, Any] = {
            "item": pa.array(self.first.items[order].tolist(), pa.string()),
            "distance": self.distances[order],
            "beyond_chance": self.beyond_chance[order],
        }
        for answer, labels in zip(self.answers, self.labels, strict=True):
            suffix = f"({answer.panel.name})"
            columns[f"label {suffix}"] = pa.array(labels[order].tolist(), pa.string())
            parts = {"p": answer.probabilities}
            if answer is not self.anonymous:
                parts |= {"low": answer.low, "high": answer.high}
            for part, values in parts.items():
                for c, name in enumerate(self.classes):
                    columns[f"{part}_{name} {suffix}"] = values[order, c]
        return pa.table(columns)


def read_panel(path: str | Path, annotations: Annotations | Attributes | None = None) -> Panel:
    """Read a panel from a file.

    Parameters
    ----------
    path : str or Path
        A .txt file with an annotator per line; or a table with a column ``annotator`` (and
        optionally ``weight``), or with the columns ``attribute``, ``value`` and ``share`` (and
        optionally ``size``, the number of people drawn).
    annotations : Annotations or mapping of str to mapping of str to str, default=None
        The attributes of the annotators, for shares of attributes; see `Panel.from_shares`.

    Returns
    -------
    Panel
    """
    from edokit._io.documents import read_text
    from edokit._io.tables import number_column, read_file_table

    path = Path(path)
    name = path.stem
    if not path.suffix and not path.exists():
        raise InputError(
            f"there is no file {path}",
            f"check the spelling; for the people with a level of an attribute, write {path}=LEVEL",
            code="missing-file",
        )
    if path.suffix.lower() == ".txt":
        lines = read_text(path).splitlines()
        return Panel(tuple(line.strip() for line in lines if line.strip()), name=name)
    source = read_file_table(path)
    table = source.table
    columns = table.column_names
    if "annotator" in columns:
        people = tuple(as_names(table["annotator"].to_pylist()))
        weights = None
        if "weight" in columns:
            weights = number_column(table, "weight", str(path), source.place)
        return Panel(people, weights, name=name)
    if not {"attribute", "value", "share"} <= set(columns):
        raise InputError(
            f"{path} has the columns {headings(columns)}; a panel has annotator (and weight), or"
            " attribute, value and share",
            "name the annotators, or the shares of their attributes",
            code="missing-column",
        )
    if annotations is None:
        raise InputError(
            f"{path} has shares of attributes, but the attributes of the annotators are unknown",
            "name a file with these attributes by --annotators (in Python: annotations)",
            code="missing-people",
        )
    attributes = as_names(table["attribute"].to_pylist())
    values = as_names(table["value"].to_pylist())
    numbers = number_column(table, "share", str(path), source.place)
    shares: dict[str, dict[str, float]] = {}
    for attribute, value, share in zip(attributes, values, numbers, strict=True):
        share_by_value = shares.setdefault(str(attribute), {})
        if value in share_by_value:
            raise InputError(
                f"{path} gives {attribute} {str(value)!r} two shares",
                "name each value of an attribute once",
                code="duplicate-name",
            )
        share_by_value[str(value)] = float(share)
    size = None
    if "size" in columns:
        size = _panel_size(number_column(table, "size", str(path), source.place), path)
    return Panel.from_shares(shares, annotations, size=size, name=name)


def _panel_size(sizes: Floats, path: Path) -> int | None:
    """The size of a panel, which is the same in all rows of its file that have one."""
    distinct_sizes = np.unique(sizes[~np.isnan(sizes)])
    if not len(distinct_sizes):
        return None
    if len(distinct_sizes) > 1 or distinct_sizes[0] != np.floor(distinct_sizes[0]):
        raise InputError(
            f"the column 'size' of {path} has"
            f" {examples((f'{size:g}' for size in distinct_sizes), 3)}, but a panel has one size,"
            " a whole number",
            "give the number of people who are drawn, the same in every row",
            code="invalid-number",
        )
    return int(distinct_sizes[0])


def unknown_hint(known_annotators: Iterable[str]) -> str:
    """The remedy for annotators that the ensemble does not know."""
    names = sorted(known_annotators)
    if names:
        return f"it knows {examples(names, 5)}"
    return (
        "the ensemble was fitted without people: fit it again on labels with annotators (`edo fit`"
        " without --no-people)"
    )


def _groups_by_value(
    attribute: str, values: Strings, share_by_value: Mapping[str, float]
) -> list[tuple[Bools, float]]:
    """For each value of an attribute, which annotators have it [A], and its share."""
    total = float(sum(share_by_value.values()))
    if total <= 0 or min(share_by_value.values()) < 0:
        raise InputError(
            f"the shares of {attribute!r} are not numbers of at least 0 with a positive sum",
            "give the share of each value",
            code="invalid-shares",
        )
    for value in share_by_value:
        if value not in values:
            raise InputError(
                f"no annotator has {attribute} {value!r}",
                f"the values are {examples(sorted(set(values)), 20)}",
                code="unknown-attribute",
            )
    return [(np.asarray(values == value), share / total) for value, share in share_by_value.items()]


def _raked_weights(
    attributes: Sequence[Sequence[tuple[Bools, float]]], count: int
) -> Floats | None:
    """Weights [A] with which every group has its share (raking); None if there are none."""
    weights = np.ones(count)
    for groups in attributes:
        has_share = np.zeros(count, dtype=bool)
        for group, share in groups:
            if share > 0:
                has_share |= group
        weights[~has_share] = 0
    for _ in range(_MOST_RAKING_ROUNDS):
        # Each attribute in turn, until adjusting one no longer changes the shares of another.
        for groups in attributes:
            for group, share in groups:
                total = weights[group].sum()
                if total > 0:
                    weights[group] *= share / total
        largest_gap = 0.0
        for groups in attributes:
            for group, share in groups:
                largest_gap = max(largest_gap, abs(weights[group].sum() - share))
        if largest_gap < _ROUNDING:
            return weights
    return None


def _drawn_interval(mean: Floats, size: int) -> tuple[Floats, Floats]:
    """The interval of the share of votes [N, C] of ``size`` people drawn at random."""
    from scipy.stats import binom

    chances = np.clip(mean, 0, 1)
    low = binom.ppf(_QUANTILES[0], size, chances) / size
    high = binom.ppf(_QUANTILES[1], size, chances) / size
    return np.asarray(low), np.asarray(high)


def _vote_interval(votes: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The interval of the weighted share of votes [N, C] of each class.

    ``votes`` [N, A, C] are the probabilities that each annotator votes for a class, ``weights``
    [N, A] are their weights; both are 0 where an annotator did not answer. The sum of votes has a
    Poisson-binomial distribution, computed for weights that are rounded to whole numbers.
    """
    answered = weights > 0
    steps = 1
    if np.ptp(weights[answered]) > _ROUNDING:  # weights differ
        steps = _GRID_STEPS
    # Rounded up, so that no positive weight becomes 0.
    whole_weights = np.ceil(weights.max(axis=0) * steps).astype(int)
    largest_sum = int(whole_weights.sum())
    totals = (answered * whole_weights).sum(axis=1)
    # By how much rounding the weights changes a share at most.
    shares = weights / weights.sum(axis=1, keepdims=True)
    error = np.abs(shares - answered * whole_weights / totals[:, None]).sum(axis=1)[:, None]
    low = np.empty((len(votes), votes.shape[2]))
    high = np.empty_like(low)
    n_items = max(1, _MOST_NUMBERS // (largest_sum * votes.shape[2]))
    for start in range(0, len(votes), n_items):
        block = slice(start, start + n_items)
        # The probability of each sum of votes, with one more person at a time.
        chances = np.zeros((len(votes[block]), largest_sum + 1, votes.shape[2]))
        chances[:, 0] = 1
        for person, weight in enumerate(whole_weights):
            vote = votes[block, person, None]
            with_vote = chances[:, : largest_sum + 1 - weight] * vote
            chances *= 1 - vote
            chances[:, weight:] += with_vote
        below = np.cumsum(chances, axis=1)
        for ends, q in zip((low, high), _QUANTILES, strict=True):
            ends[block] = (below < q - _ROUNDING).sum(axis=1) / totals[block, None]
    return np.clip(low - error, 0, 1), np.clip(high + error, 0, 1)
