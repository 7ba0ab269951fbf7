"""ArMIS/cross-fitted: members that differ in what they read, what they are and whom they follow.

python benchmarks/lewidi2023/armis_pool.py LEWIDI_FOLDER/ArMIS POOL_FOLDER [--join RUN]

89 members are made here; those of a cross-fitted RUN of `edo train` join them. Each of the 89 is a
function of similarities between texts, and these are known for all texts: which pieces of text
count, what they are worth and the components of the SVD come from train, dev and test texts alike.
Answers do not: a member learns from those of nine folds of train and dev and answers the tenth
(fit.npz); test is answered by the mean of the ten fits (test.npz).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.special import expit, logit
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, MultinomialNB

from edokit import Predictions, read_annotations, write_predictions
from edokit._types import Floats, Ints
from edokit.members.supervision import random_select_targets
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.predictions.join import join_models

FOLDS = 10
Sparse = sparse.csr_matrix
Form = tuple[str, str]
"""The pieces that are counted, and the form of the text."""
Scores = Callable[[Ints, Floats], Floats]
"""From rows to learn from and their targets to the scores of all items [N]."""
_TOKEN = r"(?u)\b\w+\b|[^\w\s]"  # emojis and punctuation are words, too
_MARKS = dict.fromkeys([*range(0x0610, 0x061B), *range(0x064B, 0x0660), 0x0670, 0x0640])
_EMOJI = re.compile("([\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d])")
_LETTERS = str.maketrans("إأآٱىةؤئ", "ااااي" + "هوي")
_BEFORE = ("وال", "بال", "كال", "فال", "لل", "ال", "و", "ب", "ل", "ف")
_AFTER = ("ات", "ون", "ين", "ها", "هم", "هن", "كم", "ه", "ي", "ا", "ت", "ن")


# What a member reads


def letters(text: str) -> str:
    """One form of alef, ya and ta marbuta, no vowel marks, no letter more than twice in a row."""
    return re.sub(r"(.)\1{2,}", r"\1\1", text.translate(_MARKS).translate(_LETTERS))


def tidy(text: str) -> str:
    """The same with hashtags opened, links, names and numbers alike, emojis apart."""
    text = re.sub(r"https?://\S+", " url ", letters(text))
    text = re.sub(r"@\w+", " user ", text).replace("#", " # ").replace("_", " ")
    text = _EMOJI.sub(r" \1 ", re.sub(r"\d+", "0", text))
    return re.sub(r"(.)\1+", r"\1", text)


def stems(text: str) -> str:
    """The same without the commonest prefix and suffix of each word."""

    def stem(word: str) -> str:
        cut = next((p for p in _BEFORE if word.startswith(p) and len(word) - len(p) >= 3), "")
        word = word[len(cut) :]
        cut = next((s for s in _AFTER if word.endswith(s) and len(word) - len(s) >= 3), "")
        return word[: len(word) - len(cut)]

    return " ".join(map(stem, tidy(text).split()))


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "letters": letters,
    "tidy": tidy,
    "stems": stems,
}
PIECES = {
    "word": ("word", 1, 1),
    "words": ("word", 1, 2),
    "across": ("char", 2, 5),
    "within-1-4": ("char_wb", 1, 4),
    "within": ("char_wb", 2, 5),
    "within-3-6": ("char_wb", 3, 6),
}


class Reading(NamedTuple):
    """All texts seen one way."""

    present: Sparse | None
    """Which pieces of text are there, as 0 and 1 [N, F]; None where readings are joined."""
    weighted: Sparse | None
    """Their TF-IDF, rows of length 1 [N, F]."""
    alike: Floats
    """Similarities [N, N]."""


def read(texts: list[str], pieces: str, form: str) -> Reading:
    """Count pieces that occur in two texts at least."""
    analyzer, shortest, longest = PIECES[pieces]
    counter = CountVectorizer(
        analyzer=analyzer, ngram_range=(shortest, longest), min_df=2, lowercase=False
    )
    if analyzer == "word":
        counter.set_params(token_pattern=_TOKEN)
    counts = counter.fit_transform([FORMS[form](text) for text in texts]).astype(float)
    present = counts.sign()
    features = tfidf(counts)
    return Reading(present, tfidf(present), (features @ features.T).toarray())


def tfidf(counts: Sparse) -> Sparse:
    """(1 + ln count) · idf, rows of length 1."""
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log((1 + counts.shape[0]) / (1 + frequency)) + 1
    features = counts.copy()
    features.data = 1 + np.log(counts.data)
    features = features @ sparse.diags(idf)
    length = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
    return (sparse.diags(1 / np.where(length > 0, length, 1)) @ features).tocsr()


def components(alike: Floats, number: int) -> Floats:
    """Cosines in the space of the largest components [N, N]."""
    n = len(alike)
    values, vectors = linalg.eigh(alike, subset_by_index=[n - number, n - 1])
    places = vectors * np.sqrt(np.maximum(values, 0))
    places /= np.linalg.norm(places, axis=1, keepdims=True)
    return places @ places.T


# What a member is: the rows to learn from and targets [n] in, the share of class 1 for all [N] out


def logistic(alike: Floats, rows: Ints, targets: Floats, strength: float) -> Floats:
    """Kernel logistic regression, by Newton's method."""
    # A constant among the features is an intercept that is hardly penalised.
    kernel = alike[np.ix_(rows, rows)] + 4.0
    scores = np.zeros(len(rows))
    for _ in range(8):
        shares = expit(scores)
        bend = np.maximum(shares * (1 - shares), 1e-6)
        ridge = kernel + np.diag(1 / (strength * bend))
        dual = linalg.solve(ridge, scores + (targets - shares) / bend, assume_a="pos")
        scores = kernel @ dual
    return expit((alike[:, rows] + 4.0) @ dual)


def ridge_scores(alike: Floats, rows: Ints, targets: Floats) -> Floats:
    """Ridge regression."""
    mean = targets.mean()
    kernel = alike[np.ix_(rows, rows)] + np.eye(len(rows))
    return mean + alike[:, rows] @ linalg.solve(kernel, targets - mean, assume_a="pos")


def near_scores(alike: Floats, rows: Ints, targets: Floats, neighbours: int) -> Floats:
    """Log-odds among the nearest texts, weighted by their squared similarity."""
    near = alike[:, rows]
    border = np.partition(near, -neighbours, axis=1)[:, [-neighbours]]
    weights = np.where(near >= border, np.maximum(near, 1e-6), 0) ** 2
    share = (weights @ targets + 0.02 * targets.mean()) / (weights.sum(axis=1) + 0.02)
    return logit(np.clip(share, 1e-9, 1 - 1e-9))


def bayes_scores(
    features: Sparse, rows: Ints, targets: Floats, model: MultinomialNB | ComplementNB
) -> Floats:
    """Log-odds of naive Bayes; shares are weighted rows."""
    stacked, answers, weights = _twice(features[rows], targets)
    log_p = model.fit(stacked, answers, sample_weight=weights).predict_log_proba(features)
    return log_p[:, 1] - log_p[:, 0]


def ratios(reading: Reading, rows: Ints, targets: Floats) -> Floats:
    """Logistic regression on features times their naive Bayes log-ratios."""
    ones = reading.present[rows].T @ targets + 1
    zeros = reading.present[rows].T @ (1 - targets) + 1
    ratio = np.log(ones / ones.sum() / (zeros / zeros.sum()))
    features = reading.weighted @ sparse.diags(ratio)
    return logistic((features @ features.T).toarray(), rows, targets, 4.0)


def calibrated(scores: Scores, rows: Ints, targets: Floats) -> Floats:
    """Scores to shares, by a logistic curve through those of five inner folds."""
    held_out_scores = np.zeros(len(rows))
    for part in np.array_split(np.random.default_rng(0).permutation(len(rows)), 5):
        other_rows = np.setdiff1d(np.arange(len(rows)), part)
        held_out_scores[part] = scores(rows[other_rows], targets[other_rows])[rows[part]]
    spread = held_out_scores.std()
    stacked, answers, weights = _twice(held_out_scores[:, None] / spread, targets)
    curve = LogisticRegression(C=10.0).fit(stacked, answers, sample_weight=weights)
    return curve.predict_proba(scores(rows, targets)[:, None] / spread)[:, 1]


def _twice(features: Sparse | Floats, targets: Floats) -> tuple[Sparse | Floats, Ints, Floats]:
    """Each row once with class 0 and once with class 1, and their weights."""
    stack = sparse.vstack if sparse.issparse(features) else np.vstack
    answers = np.repeat([0, 1], len(targets))
    return stack([features, features]), answers, np.concatenate([1 - targets, targets])


# The pool

_LOGISTIC = (
    *(("word", "letters"), ("words", "plain"), ("words", "letters"), ("across", "letters")),
    *(("within-1-4", "letters"), ("within", "plain"), ("within", "letters")),
    *(("within-3-6", "plain"), ("within-3-6", "tidy"), ("both", "plain"), ("both", "letters")),
    *(("both", "tidy"), ("words", "stems")),
)
_THREE = (("both", "plain"), ("within-3-6", "letters"), ("words", "letters"))
_PEOPLE = (("both", "plain"), ("within-3-6", "plain"), ("words", "letters"), ("within", "letters"))
_SVD = (*_THREE, ("within", "tidy"))
_BAYES = (("words", "letters"), ("within", "plain"), ("within-3-6", "letters"))
_JOINED = (("both", "plain"), ("both", "letters"), ("both", "tidy"), ("all", "forms"))
_ALL = (
    *(("words", "plain"), ("words", "letters"), ("within", "plain")),
    *(("within-3-6", "plain"), ("within-3-6", "letters"), ("within-3-6", "tidy")),
)
_DRAWN = (("both", "plain"), ("within-3-6", "plain"), ("words", "letters"))


def readings(texts: list[str]) -> dict[Form, Reading]:
    """Every reading that the pool needs; "both" joins words, which count half, and characters."""
    all_forms = {*_LOGISTIC, *_THREE, *_PEOPLE, *_SVD, *_BAYES, *_ALL, *_DRAWN}
    joined_forms = [form for pieces, form in sorted(all_forms) if pieces == "both"]
    all_forms.update(product(("words", "within"), joined_forms))
    features_of_form = {
        form_key: read(texts, *form_key) for form_key in sorted(all_forms) if form_key[0] != "both"
    }
    for form in joined_forms:
        mixed = (
            0.25 * features_of_form["words", form].alike + features_of_form["within", form].alike
        ) / 1.25
        features_of_form["both", form] = Reading(None, None, mixed)
    mean_alike = np.mean([features_of_form[form_key].alike for form_key in _ALL], axis=0)
    features_of_form["all", "forms"] = Reading(None, None, mean_alike)
    return features_of_form


def members(
    course: TrainingData, reading_of: dict[Form, Reading]
) -> Iterator[tuple[str, str, Callable[[Ints], Floats]]]:
    """Group, name, and a function from rows to learn from to the answers for all items [N]."""
    labels = course.annotations
    soft = labels.soft_labels[:, 1]
    hard = course.hard.astype(float)
    people = np.zeros((len(course), len(labels.annotators)))
    people[labels.item_codes, labels.annotator_codes] = labels.label_codes

    def linear(targets: Floats, alike: Floats, strength: float) -> Callable[[Ints], Floats]:
        return lambda rows: logistic(alike, rows, targets[rows], strength)

    def curve(scores: Scores) -> Callable[[Ints], Floats]:
        return lambda rows: calibrated(scores, rows, soft[rows])

    def ratio(reading: Reading) -> Callable[[Ints], Floats]:
        return lambda rows: ratios(reading, rows, soft[rows])

    for form in _LOGISTIC:
        for strength in (4.0, 12.0):
            name = f"{_name(form)}-{strength:g}"
            yield "soft", name, linear(soft, reading_of[form].alike, strength)
    for form in _PEOPLE:
        for k, person in enumerate(labels.annotators):
            yield (
                "annotator",
                f"{_name(form)}-{person}",
                linear(people[:, k], reading_of[form].alike, 6.0),
            )
    for form in _THREE:
        alike = reading_of[form].alike
        yield "majority", _name(form), linear(hard, alike, 4.0)
        yield "ridge", _name(form), curve(lambda r, t, alike=alike: ridge_scores(alike, r, t))
        for k in (20, 60):
            nearest = curve(lambda r, t, alike=alike, k=k: near_scores(alike, r, t, k))
            yield "nearest", f"{_name(form)}-{k}", nearest
    for form in _SVD:
        for number in (50, 200):
            alike = components(reading_of[form].alike, number)
            yield "components", f"{_name(form)}-{number}", linear(soft, alike, 3.0)
            if number == 50:
                curved = np.exp(2 * (alike - 1))
                yield "curved", f"{_name(form)}-{number}", linear(soft, curved, 3.0)
    for form in _JOINED:
        for number in (20, 30, 50):
            alike = reading_of[form].alike
            joined = (np.exp(2 * (components(alike, number) - 1)) + alike) / 2
            yield "joined", f"{_name(form)}-{number}", linear(soft, joined, 12.0)
    for form in _BAYES:
        reading = reading_of[form]
        multinomial = curve(
            lambda r, t, features=reading: bayes_scores(
                features.present, r, t, MultinomialNB(alpha=0.5)
            )
        )
        complement = curve(
            lambda r, t, features=reading: bayes_scores(
                features.weighted, r, t, ComplementNB(alpha=0.3)
            )
        )
        yield "bayes", f"{_name(form)}-multinomial", multinomial
        yield "bayes", f"{_name(form)}-complement", complement
        yield "bayes", f"{_name(form)}-ratios", ratio(reading)
    for seed in range(6):
        form = _DRAWN[seed % 3]
        drawn_labels = random_select_targets(labels, seed)[:, 1]
        yield "drawn", f"{_name(form)}-{seed}", linear(drawn_labels, reading_of[form].alike, 5.0)


def _name(form: Form) -> str:
    return "-".join(form)


def main() -> None:
    """Train in ten folds, join others and write fit.npz, its dev part as dev.npz, and test.npz."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--join", type=Path, metavar="RUN")
    arguments = parser.parse_args()
    course = TrainingData.from_annotations(read_annotations(arguments.data))
    folds = fold_numbers(course, FOLDS, seed=0)
    pool = list(members(course, readings([str(text) for text in course.texts])))
    predicted = np.zeros((len(course), len(pool)))
    for k, (_, _, learn) in enumerate(pool):
        for fold in range(FOLDS):
            learned = learn(np.flatnonzero((folds >= 0) & (folds != fold)))
            predicted[:, k] += np.where(folds == fold, learned, 0) + np.where(
                folds < 0, learned / FOLDS, 0
            )
    dev = np.flatnonzero(np.array(course.splits)[folds >= 0] == "dev")
    for name, rows in (("fit", folds >= 0), ("test", np.array(course.splits) == "test")):
        shares = predicted[rows]
        table = Predictions.from_arrays(
            np.stack([1 - shares, shares], axis=-1).astype(np.float32),
            items=np.array(course.items)[rows],
            members=[f"{group}.{form}" for group, form, _ in pool],
            classes=course.classes,
            groups=[group for group, _, _ in pool],
            layout="NKC",
        )
        file = arguments.pool / f"{name}.npz"
        write_predictions(table, file)
        if arguments.join is not None:
            table = join_models([file, arguments.join / "predictions" / f"{name}.npz"])
            write_predictions(table, file)
        if name == "fit":
            write_predictions(table.take(dev), arguments.pool / "dev.npz")
            print(f"{arguments.pool}: {len(table.members)} members, {len(table)} items to fit on")


if __name__ == "__main__":
    main()
