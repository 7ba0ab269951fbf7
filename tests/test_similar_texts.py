"""Texts that share most of their words: no gain is claimed on groups whose labels are random."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edokit
from commands import edo
from edokit import Annotations, read_annotations
from edokit.analysis.scores.result import Gain
from edokit.datasets.similar_texts import (
    SimilarTextsWarning,
    similar_text_groups,
    warn_of_similar_texts,
)

VOCABULARY = [
    f"{first}{second}o" for first in "bcdfglmnprst" for second in ("al", "em", "in", "or")
]
N_GROUPS = 40
SIZE = 5


def long_words(rng: np.random.Generator, count: int) -> list[str]:
    """Different words of two syllables."""
    return ["".join(rng.choice(VOCABULARY, 2)) + str(rng.integers(10)) for _ in range(count)]


def template_texts(rng: np.random.Generator) -> list[str]:
    """Groups of five texts that share eight of twelve words."""
    texts = []
    for _ in range(N_GROUPS):
        shared = long_words(rng, 8)
        for _ in range(SIZE):
            texts.append(" ".join([*shared, *long_words(rng, 4)]))
    return texts


def shuffled_texts(rng: np.random.Generator) -> list[str]:
    """Groups of five texts with the same twelve words, in another order each."""
    texts = []
    for _ in range(N_GROUPS):
        words = long_words(rng, 12)
        for _ in range(SIZE):
            texts.append(" ".join(rng.permutation(words)))
    return texts


def annotated(texts: list[str], rng: np.random.Generator) -> pd.DataFrame:
    """Three answers for each text, which follow a label drawn at random for its group."""
    rows = []
    for number, text in enumerate(texts):
        group = number // SIZE
        if number % SIZE == 0:
            label = int(rng.integers(2))
        for annotator in range(3):
            answer = label if rng.random() < 0.9 else 1 - label
            rows.append((f"i{number}", f"a{annotator}", "ny"[answer], text, f"t{group}"))
    return pd.DataFrame(rows, columns=["item", "annotator", "label", "text", "template"])


def gain_over_constant(result: edokit.Run) -> Gain:
    return Gain(**result.results["gains"]["constant"])


@pytest.mark.parametrize("make_texts", [template_texts, shuffled_texts])
def test_a_run_with_groups_claims_no_gain_from_shared_words(make_texts, tmp_path: Path):
    rng = np.random.default_rng(5)
    table = annotated(make_texts(rng), rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimilarTextsWarning)
        result = edokit.run(table, tmp_path / "run", time="1s", columns={"group": "template"})
    assert gain_over_constant(result).standing != "better"
    # Other commands read the table that the run wrote, groups included.
    assert read_annotations(tmp_path / "run" / "annotations.parquet").item_groups is not None


@pytest.mark.parametrize("make_texts", [template_texts, shuffled_texts])
def test_a_run_without_groups_warns_once_with_the_flag(make_texts, tmp_path: Path):
    rng = np.random.default_rng(5)
    table = annotated(make_texts(rng), rng)
    with pytest.warns(
        SimilarTextsWarning, match=r"200 of 200 items.*'group'.*--group-sim"
    ) as caught:
        result = edokit.run(table, tmp_path / "run", time="1s")
    assert sum(issubclass(entry.category, SimilarTextsWarning) for entry in caught) == 1
    # The warning is needed: what the models know of the words looks like a gain.
    assert gain_over_constant(result).standing == "better"


def test_similar_texts_are_found_and_others_are_not():
    rng = np.random.default_rng(0)
    for texts in (template_texts(rng), shuffled_texts(rng)):
        groups = similar_text_groups(texts)
        assert groups.tolist() == np.repeat(np.arange(N_GROUPS), SIZE).tolist()
    alone = [" ".join(long_words(rng, 12)) for _ in range(100)]
    assert len(np.unique(similar_text_groups(alone))) == 100


def test_short_texts_are_not_similar():
    texts = ["yes of course", "of course not", "no of course", "of course"]
    assert len(np.unique(similar_text_groups(texts))) == 4


def test_ordinary_texts_make_no_warning():
    annotations = edokit.simulate("two-camps", items=(300, 0, 0)).annotations
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimilarTextsWarning)
        warn_of_similar_texts(annotations)


def test_groups_can_be_made_from_the_texts(tmp_path: Path):
    rng = np.random.default_rng(0)
    annotated(template_texts(rng), rng).to_csv(tmp_path / "votes.csv", index=False)
    words = ["data", "convert", str(tmp_path / "votes.csv"), str(tmp_path / "out.csv")]
    assert edo(*words, "--group-similar").returncode == 0
    found: Annotations = read_annotations(tmp_path / "out.csv")
    assert found.item_groups is not None
    assert len(set(found.item_groups.tolist())) == N_GROUPS
