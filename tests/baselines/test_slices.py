"""Methods by the values of an item column."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pool_cases import sample

import edokit
from edokit import Annotations
from edokit._errors import InputError
from edokit.baselines.comparison import compare
from edokit.baselines.slices import FEWEST_ITEMS
from edokit.metrics import ce


def with_columns(annotations: Annotations, **columns: Any) -> Annotations:
    """The same annotations with item columns, a value per item each."""
    table = annotations.to_table().to_pandas()
    at = {str(item): i for i, item in enumerate(annotations.items)}
    for name, values in columns.items():
        table[name] = [values[at[str(item)]] for item in table["item"]]
    return Annotations.from_table(table, classes=annotations.classes)


def two_langs(items: int = 240, *, bad: float = 0.0, seed: int = 0) -> tuple[Any, Annotations]:
    """Probabilities that are noise on a share ``bad`` of the Italian items; three languages."""
    predictions, people = sample(items, seed=seed)
    p = predictions.probabilities[:, 0].astype(float).copy()
    langs = np.array(["en", "it", "nl"])[np.arange(items) % 3]
    noise = np.random.default_rng(seed + 1).dirichlet([1, 1], size=items)
    spoilt = (langs == "it") & (np.random.default_rng(seed + 2).random(items) < bad)
    p[spoilt] = noise[spoilt]
    return p, with_columns(people, lang=langs)


def test_each_slice_has_the_metrics_of_its_items() -> None:
    p, people = two_langs()
    found = edokit.evaluate(p, people, by="lang", samples=100)
    assert [(one.column, one.value, one.items) for one in found.slices] == [
        ("lang", "en", 80),
        ("lang", "it", 80),
        ("lang", "nl", 80),
    ]
    for one in found.slices:
        part = people.item_column("lang") == one.value
        alone = edokit.evaluate(p[part], people.take(part), train_annotations=people, samples=100)
        assert one.scores[0].ce == pytest.approx(alone.metrics["ce"])
        assert one.floor == pytest.approx(alone.ce_floor)
        assert (
            one.scores[0].intervals["ce"][0] < one.scores[0].ce < one.scores[0].intervals["ce"][1]
        )
        # The constant is the same everywhere, not one per slice.
        assert one.score("constant").ce == pytest.approx(alone.scores[-1].ce)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [one["value"] for one in told["slices"]] == ["en", "it", "nl"]


def test_the_worst_slice_is_named_only_when_it_is_clearly_worse() -> None:
    p, people = two_langs(bad=0.7)
    found = edokit.evaluate(p, people, by="lang", samples=500)
    said = " ".join(found.headline)
    italian = found.slices[1]
    assert "Worst slice in CE: lang: it (80 items)" in said
    assert f"{italian.scores[0].ce:.4f}" in said
    assert italian.against_rest["ce"].low > 0
    q, rest = people.soft_labels, people.item_column("lang") != "it"
    on_rest, ours = ce(p[rest], q[rest]), italian.scores[0].ce
    assert italian.against_rest["ce"].estimate == pytest.approx(ours - on_rest)
    assert f"against {on_rest:.4f} on the rest" in said
    above = ours - italian.floor - (on_rest - people.entropy[rest].mean())
    assert italian.against_rest["ce_above_floor"].estimate == pytest.approx(above)
    assert edokit.evaluate(p, people, by="lang", samples=0).slices[1].against_rest == {}


def test_slices_that_differ_by_chance_are_rarely_called_different() -> None:
    called = 0
    for seed in range(40):
        p, people = two_langs(150, seed=seed)
        people = with_columns(people, part=[str(i % 7) for i in range(150)])
        found = edokit.evaluate(p, people, by=["lang", "part"], samples=200, random_state=seed)
        ends = [one.against_rest["ce"] for one in found.slices]
        called += any(one.low > 0 or one.high < 0 for one in ends)
    # Ten slices at 95 % without a correction would be in about a third of the draws.
    assert called <= 6


def test_items_that_people_are_more_divided_on_are_no_worse_slice() -> None:
    rng = np.random.default_rng(0)
    share = np.where(np.arange(300) < 150, 0.5, 0.05)
    labels = (rng.random((300, 5)) < share[:, None]).astype(int)
    people = with_columns(Annotations.from_matrix(labels), kind=["split"] * 150 + ["agreed"] * 150)
    p = people.soft_labels * 0.9 + 0.05
    found = edokit.evaluate(p, people, by="kind", samples=500)
    agreed, divided = found.slices
    assert divided.scores[0].ce > 2 * agreed.scores[0].ce
    assert divided.against_rest["ce"].low > 0
    assert "Worst slice in CE" not in " ".join(found.headline)


def test_missing_values_are_a_slice_and_small_slices_have_no_intervals() -> None:
    p, people = two_langs(60)
    values = ["a"] * 40 + ["b"] * 5 + [""] * 15
    found = edokit.evaluate(p, with_columns(people, source=values), by="source", samples=100)
    assert [(one.value, one.items) for one in found.slices] == [("a", 40), ("b", 5), (None, 15)]
    assert found.slices[2].name == "source: (missing)"
    assert FEWEST_ITEMS > 5
    assert found.slices[1].scores[0].intervals == {}
    assert found.slices[1].against_rest == {}


def test_columns_that_make_no_slices_are_refused() -> None:
    p, people = two_langs(60)
    people = with_columns(people, user=[f"user-{i}" for i in range(60)])
    with pytest.raises(InputError, match="'user' has 60 different values"):
        edokit.evaluate(p, people, by="user")
    with pytest.raises(InputError, match=r"'langs'.*did you mean 'lang'\? The columns") as error:
        edokit.evaluate(p, people, by=["langs"])
    assert "by" in str(error.value)


def test_compare_slices_every_method_of_the_test_items(tmp_path: Path) -> None:
    dev = sample(80)
    predictions, people = sample(60, seed=1, prefix="new")
    people = with_columns(people, lang=["en", "it"] * 30)
    found = compare(*dev, predictions, people, methods=["greedy", "edo"], by="lang", samples=100)
    assert [one.value for one in found.slices] == ["en", "it"]
    names = [score.name for score in found.slices[0].scores]
    assert names == ["edo", "constant", "uniform", "greedy"]
    edo = [one.score("edo") for one in found.slices]
    assert np.mean([score.ce for score in edo]) == pytest.approx(found["edo"].ce)
    assert set(edo[0].against_constant) == {"f1", "ce", "md", "bs"}
    assert found.to_dict()["by"] == ["lang"]
    assert "lang: it" in found.slice_table().text("markdown")
    found.save(tmp_path)
    rows = pd.read_csv(tmp_path / "compare" / "slices.csv")
    assert rows["slice"].tolist() == ["lang: en", "lang: it"]
    assert rows["CE ↓"].tolist() == [score.ce for score in edo]
    replace(found, slices=()).save(tmp_path)
    assert not (tmp_path / "compare" / "slices.csv").exists()
