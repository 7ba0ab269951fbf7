"""Panels: the distribution that a group of annotators would give, and how far a draw may be off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edokit._errors import InputError, are, counted, examples, headings
from edokit._names import as_names, check_unique, positions
from edokit._types import Bools, Floats, Ints, Strings
from edokit.annotations.core import Annotations, find_attribute
from edokit.rows import Rows
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    import pyarrow as pa

# Attributes by annotator, as in ``{"ann": {"age": "29"}}``.
Attributes = Mapping[str, Mapping[str, str]]
LEVEL = 0.9
"""Level of the intervals of a panel's votes."""
_TAILS = (1 - LEVEL) / 2, (1 + LEVEL) / 2
_ROUNDS = 500
_CLOSE = 1e-9
_LATTICE = 1000
"""Steps between no votes and all votes of a panel whose weights differ."""
_LARGE_PANEL = 100
"""More people than this are treated as drawn from a population."""
_CELLS = 4_000_000
"""Numbers that intervals of votes hold in memory at a time."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Annotators whose view an answer takes, and how much each of them counts.

    Build one from a list of annotators, from shares of attributes with `from_shares`, or from a
    file with `read_panel`.

    Parameters
    ----------
    annotators : tuple of str
        Their ids.
    weights : array of shape (A,), default=None
        How much each counts; equal if None.
    size : int, default=None
        How many people answer: the panel itself if None. Attributes describe a population, of
        which so many are drawn.
    name : str, default="panel"
        Names it in tables and messages.

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
        if "" in self.annotators and len(self.annotators) > 1:  # alone: the anonymous answer
            position = self.annotators.index("") + 1
            raise InputError(
                f"entry {position} of {self.name} names no annotator", hint, code="missing-value"
            )
        check_unique(as_names(self.annotators), f"annotators of {self.name}", "name each once")
        count = len(self.annotators)
        weights = np.ones(count) if self.weights is None else np.asarray(self.weights, dtype=float)
        total = weights.sum() if weights.shape == (count,) else np.nan
        if not (np.isfinite(total) and total > 0 and (weights >= 0).all()):
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
        size = "" if self.size is None else f", {self.size} drawn"
        return f"{self.name} ({counted(len(self.annotators), 'annotator')}{size})"

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
            Values that are not named get none.
        annotations : Annotations or mapping of str to mapping of str to str
            Who the annotators are: their ``attributes``, or these by annotator.
        size : int, default=None
            How many people are drawn from this population.
        name : str, default="panel"
            Names the panel in tables and messages.

        Returns
        -------
        Panel

        Raises
        ------
        InputError
            If an attribute or value is unknown, or no annotators fit all shares.

        Examples
        --------
        >>> rows = {"item": [1, 1, 1], "annotator": ["a", "b", "c"], "label": [0, 1, 1]}
        >>> people = Annotations.from_table({**rows, "age": ["old", "young", "young"]})
        >>> Panel.from_shares({"age": {"old": 0.5, "young": 0.5}}, people).weights
        array([0.5 , 0.25, 0.25])
        """
        if not shares:
            raise InputError(f"{name} names no attributes", "name one", code="empty-option")
        people: Any = annotations
        if not isinstance(annotations, Annotations):
            table = pd.DataFrame.from_dict(dict(annotations), orient="index").fillna("")
            columns = {name: table[name].to_numpy() for name in table}
            people = SimpleNamespace(annotators=[*annotations], attributes=columns)
        groups = [
            _groups(attribute, np.asarray(find_attribute(people, attribute)), share_by_value)
            for attribute, share_by_value in shares.items()
        ]
        weights = _raked(groups, len(people.annotators))
        if weights is None:
            raise InputError(
                f"no weights of these annotators fit all shares of {name}",
                "ask for fewer attributes, or check that people with these values exist",
                code="impossible-shares",
            )
        members = np.flatnonzero(weights)
        return cls(tuple(str(people.annotators[a]) for a in members), weights[members], size, name)

    def mean(self, rows: Rows, values: Floats) -> Floats:
        """Return the panel's mean of values [R, ...] for each item [N, ...].

        Where some of the panel did not answer, the others count by their weights.
        """
        positions, seats = self._seats(rows)
        return rows.take(positions).mean(values[positions], self.weights[seats])

    def answer(self, rows: Rows, p: Floats) -> PanelAnswer:
        """Return the panel's distribution of each item, from answers for its annotators.

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
        positions, seats = self._seats(rows)
        answered = rows.take(positions)
        mean = answered.mean(p[positions], self.weights[seats])
        if self.size is None:  # these people, each with one answer
            votes = np.zeros((len(mean), len(self.annotators), p.shape[1]))
            weights = np.zeros(votes.shape[:2])
            votes[answered.item_codes, seats] = p[positions]
            weights[answered.item_codes, seats] = self.weights[seats]
            low, high = _vote_interval(votes, weights)
        else:  # so many people drawn from a population with these shares
            low, high = _drawn_interval(mean, self.size)
        return PanelAnswer(self, answered.by_item(), mean, low, high)

    def weighted_mean(self, values: Floats) -> Floats:
        """Return the panel's mean [N, C] of what each of its people answers [N, A, C]."""
        return np.asarray(np.einsum("nac,a->nc", values, self.weights))

    def answer_votes(self, rows: Rows, votes: Floats) -> PanelAnswer:
        """Return the panel's distribution of each item, from the answers of all its people.

        Parameters
        ----------
        rows : Rows
            The items [N].
        votes : array of shape (N, A, C)
            What each of its people would answer.

        Returns
        -------
        PanelAnswer
        """
        mean = self.weighted_mean(votes)
        if self.size is not None:  # so many people drawn from a population with these shares
            low, high = _drawn_interval(mean, self.size)
        elif len(self.annotators) > _LARGE_PANEL:
            # Votes of people who differ vary less than those of people drawn from their mean.
            low, high = _drawn_interval(mean, len(self.annotators))
        else:
            low, high = _vote_interval(votes, np.tile(self.weights, (len(votes), 1)))
        return PanelAnswer(self, rows, mean, low, high)

    def _seats(self, rows: Rows) -> tuple[Ints, Ints]:
        """The positions of rows about the panel's annotators, and which of them each is about."""
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
        seat_of_row = positions(names, as_names(self.annotators))
        inside = np.flatnonzero(seat_of_row >= 0)
        return inside, seat_of_row[inside]


@dataclass(frozen=True, eq=False)
class PanelAnswer:
    """What a panel would answer, with how far the votes of a finite panel may be from it.

    Attributes
    ----------
    panel : Panel
    rows : Rows
        The items.
    probabilities : ndarray of shape (N, C)
    low, high : ndarray of shape (N, C)
        Ends of the interval of the share of votes.
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
        ends = self.low[order], self.high[order]
        return PanelAnswer(self.panel, rows, self.probabilities[order], *ends)


@dataclass(frozen=True, eq=False)
class PanelComparison:
    """What two panels would answer about the same items, side by side.

    Made by `edokit.ensemble.reviews.compare_panels`.

    Attributes
    ----------
    one, other : PanelAnswer
    classes : tuple of str
        Class names [C].
    scale : Scale
        The answer scale.
    anonymous : PanelAnswer or None
        The answers for nobody in particular, where the members gave them.
    """

    one: PanelAnswer
    other: PanelAnswer
    classes: tuple[str, ...]
    scale: Scale = NOMINAL
    anonymous: PanelAnswer | None = None

    def __post_init__(self) -> None:
        names = [self.one.panel.name, self.other.panel.name]
        if names[0] == names[1]:
            raise InputError(
                f"both panels are called {names[0]!r}",
                "give their files different names",
                code="duplicate-name",
            )
        for name in ("other", "anonymous"):
            if (answer := getattr(self, name)) is not None:
                object.__setattr__(self, name, answer.align(self.one.rows, names[0]))

    @property
    def answers(self) -> tuple[PanelAnswer, ...]:
        """Those of both panels, then the anonymous ones if there are any."""
        panels = (self.one, self.other)
        if self.anonymous is None:
            return panels
        return (*panels, self.anonymous)

    @cached_property
    def distances(self) -> Floats:
        """How far apart the panels are on each item [N]: L1, its mean over labels for multi-label
        data, on an ordinal scale Wasserstein-1 in its units."""
        ours, theirs = (self.scale.coordinates(answer.probabilities) for answer in self.answers[:2])
        return np.asarray(np.abs(ours - theirs).sum(axis=1))

    @cached_property
    def order(self) -> Ints:
        """Positions of the items, those where the panels part ways most first [N]."""
        return np.argsort(-self.distances, kind="stable")

    @cached_property
    def labels(self) -> tuple[Strings, ...]:
        """What each of the `answers` decides: the likeliest class, or the labels above one half."""
        decided = (self.scale.hard(answer.probabilities) for answer in self.answers)
        return tuple(self.scale.names(hard, self.classes) for hard in decided)

    @property
    def decisions_differ(self) -> Bools:
        """Whether the panels decide differently [N]."""
        return np.asarray(self.labels[0] != self.labels[1], dtype=bool)

    @property
    def beyond_chance(self) -> Bools:
        """Whether the intervals of both panels' votes are apart for some class [N]: drawing other
        people of the same kind would hardly close the gap."""
        disjoint = (self.one.low > self.other.high) | (self.other.low > self.one.high)
        return np.asarray(disjoint.any(axis=1))

    def summary(self) -> dict[str, Any]:
        """Return how far the panels part ways over all items.

        Returns
        -------
        dict
            ``items``, ``panels`` with the size of each, mean ``distance``, how many
            ``decisions_differ`` and how many items are ``beyond_chance``; ``follows``: as whom the
            anonymous answer decides where the decisions differ (None without anonymous answers).
        """
        differ = self.decisions_differ
        panels = [self.one.panel, self.other.panel]
        follows = None
        if self.anonymous is not None:
            follows = {
                panel.name: int((differ & (self.labels[2] == labels)).sum())
                for panel, labels in zip(panels, self.labels[:2], strict=True)
            }
            follows["neither"] = int(differ.sum()) - sum(follows.values())
        return {
            "items": len(self.one.items),
            "panels": {panel.name: len(panel.annotators) for panel in panels},
            "distance": float(self.distances.mean()),
            "decisions_differ": int(differ.sum()),
            "beyond_chance": int(self.beyond_chance.sum()),
            "follows": follows,
            "level": LEVEL,
        }

    def to_table(self) -> pa.Table:
        """One row per item, those where the panels part ways most first.

        ``item``, ``distance``, ``beyond_chance``; for each panel, and for ``anonymous``, columns
        with its name in parentheses: ``label (…)``, ``p_<class> (…)`` and, of panels, the ends of
        the interval of its votes, ``low_<class> (…)`` and ``high_<class> (…)``.
        """
        import pyarrow as pa

        order = self.order
        columns: dict[str, Any] = {
            "item": pa.array(self.one.items[order].tolist(), pa.string()),
            "distance": self.distances[order],
            "beyond_chance": self.beyond_chance[order],
        }
        for answer, labels in zip(self.answers, self.labels, strict=True):
            whose = f"({answer.panel.name})"
            columns[f"label {whose}"] = pa.array(labels[order].tolist(), pa.string())
            parts = {"p": answer.probabilities}
            if answer is not self.anonymous:
                parts |= {"low": answer.low, "high": answer.high}
            for part, values in parts.items():
                for c, name in enumerate(self.classes):
                    columns[f"{part}_{name} {whose}"] = values[order, c]
        return pa.table(columns)


def read_panel(path: str | Path, annotations: Annotations | Attributes | None = None) -> Panel:
    """Read a panel from a file.

    Parameters
    ----------
    path : str or Path
        A .txt file with an annotator per line; or a table with a column ``annotator`` (and perhaps
        ``weight``), or with the columns ``attribute``, ``value`` and ``share`` (and perhaps
        ``size``, the number of people drawn).
    annotations : Annotations or mapping of str to mapping of str to str, default=None
        Who the annotators are, for shares of attributes; see `Panel.from_shares`.

    Returns
    -------
    Panel
    """
    from edokit._io.documents import read_text
    from edokit._io.tables import number_column, read_table

    path = Path(path)
    name = path.stem
    if path.suffix.lower() == ".txt":
        lines = read_text(path).splitlines()
        return Panel(tuple(line.strip() for line in lines if line.strip()), name=name)
    table = read_table(path)
    columns = table.column_names
    if "annotator" in columns:
        people = tuple(as_names(table["annotator"].to_pylist()))
        weights = number_column(table, "weight", str(path)) if "weight" in columns else None
        return Panel(people, weights, name=name)
    if not {"attribute", "value", "share"} <= {*columns}:
        raise InputError(
            f"{path} has the columns {headings(columns)}; a panel has annotator (and weight), or"
            " attribute, value and share",
            "name the annotators, or the shares of their attributes",
            code="missing-column",
        )
    if annotations is None:
        raise InputError(
            f"{path} has shares of attributes, but nothing says who the annotators are",
            "name a file in which they have these attributes with --annotators (in Python:"
            " annotations)",
            code="missing-people",
        )
    shares: dict[str, dict[str, float]] = {}
    numbers = number_column(table, "share", str(path))
    names = (as_names(table[column].to_pylist()) for column in ("attribute", "value"))
    for attribute, value, share in zip(*names, numbers, strict=True):
        shares.setdefault(str(attribute), {})[str(value)] = float(share)
    size = int(number_column(table, "size", str(path))[0]) if "size" in columns else None
    return Panel.from_shares(shares, annotations, size=size, name=name)


def unknown_hint(known_annotators: Iterable[str]) -> str:
    """What to do about annotators whom no member knows."""
    if names := sorted(known_annotators):
        return f"known are {examples(names, 5)}"
    return (
        "the ensemble was fitted without people: fit it again on labels with annotators (`edo fit`"
        " without --no-people)"
    )


def _groups(
    attribute: str, values: Strings, share_by_value: Mapping[str, float]
) -> list[tuple[Bools, float]]:
    """Who has each value of an attribute [A], and the share that they should have."""
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


def _raked(attributes: Sequence[Sequence[tuple[Bools, float]]], count: int) -> Floats | None:
    """Weights [A] with which every group has its share (raking); None if there are none."""
    weights = np.ones(count)
    for groups in attributes:
        weights[~np.logical_or.reduce([group for group, share in groups if share > 0])] = 0
    for _ in range(_ROUNDS):
        # Each attribute in turn, until none moves the weights of another any more.
        for groups in attributes:
            for group, share in groups:
                total = weights[group].sum()
                weights[group] *= share / total if total > 0 else 0.0
        gaps = (weights[group].sum() - share for groups in attributes for group, share in groups)
        if max(map(abs, gaps)) < _CLOSE:
            return weights
    return None


def _drawn_interval(mean: Floats, size: int) -> tuple[Floats, Floats]:
    """Inclusive quantiles of the share of votes of ``size`` people drawn at random."""
    from scipy.stats import binom

    low, high = (binom.ppf(q, size, np.clip(mean, 0, 1)) / size for q in _TAILS)
    return np.asarray(low), np.asarray(high)


def _vote_interval(votes: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Inclusive quantiles of the weighted share of votes [N, C] of each class.

    ``votes`` [N, A, C] are the probabilities that people vote for a class, ``weights`` [N, A] how
    much each counts; who did not answer has 0 in both. Votes add up to a Poisson-binomial
    distribution, on a lattice of whole weights.
    """
    answered = weights > 0
    unequal = np.ptp(weights[answered]) > _CLOSE
    # Rounded up, so that nobody who counts gets a weight of 0.
    units = np.ceil(weights.max(axis=0) * (_LATTICE if unequal else 1)).astype(int)
    totals = (answered * units).sum(axis=1)
    # What rounding the weights may move a share by.
    exact = weights / weights.sum(axis=1, keepdims=True)
    slack = np.abs(exact - answered * units / totals[:, None]).sum(axis=1)[:, None]
    ends = np.empty((2, len(votes), votes.shape[2]))
    step = max(1, _CELLS // (int(units.sum()) * votes.shape[2]))
    for start in range(0, len(votes), step):
        block = slice(start, start + step)
        chances = np.zeros((len(votes[block]), int(units.sum()) + 1, votes.shape[2]))
        chances[:, 0] = 1
        for person, unit in enumerate(units):
            vote = votes[block, person, None]
            with_vote = chances[:, : chances.shape[1] - unit] * vote
            chances *= 1 - vote
            chances[:, unit:] += with_vote
        below = np.cumsum(chances, axis=1)
        for end, q in zip(ends, _TAILS, strict=True):
            end[block] = (below < q - _CLOSE).sum(axis=1) / totals[block, None]
    return np.clip(ends[0] - slack, 0, 1), np.clip(ends[1] + slack, 0, 1)
