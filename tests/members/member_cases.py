"""Small data and odd recipes for the tests of members."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from edokit._progress import Progress
from edokit._types import Floats
from edokit.members import Capabilities, Member, MemberData

if TYPE_CHECKING:
    from edokit import Annotations

KIND = ("tea", "garden", "sunny", "friend", "music", "bread", "river", "warm")
RUDE = ("awful", "rubbish", "nonsense", "silly", "boring", "dull", "noisy", "late")


def small_people(
    n: int = 72, seed: int = 0, annotators: int = 3, splits: bool = True
) -> Annotations:
    """Texts of kind and rude words; the ruder, the more of the annotators object."""
    # One test trains these recipes where pandas is not installed.
    from edokit import Annotations

    rng = np.random.default_rng(seed)
    rows: dict[str, list[str]] = {
        name: [] for name in ("item", "annotator", "label", "text", "split")
    }
    for i in range(n):
        rude = i % 5
        words = [*rng.choice(RUDE, rude), *rng.choice(KIND, 5 - rude), f"word{i}"]
        text = " ".join(words[j] for j in rng.permutation(len(words)))
        for a in range(annotators):
            label = str(int(rng.random() < 0.1 + 0.2 * rude))
            split = ("train", "train", "dev", "test")[i % 4]
            values = (f"item-{i}", f"person-{a}", label, text, split)
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    if not splits:
        del rows["split"]
    return Annotations.from_table(rows, classes=["0", "1"])


def on_scale(kind: str, n: int = 72, annotators: int = 3) -> Annotations:
    """Texts rated from 1 to 4 ("ordinal"), or marked as rude and long ("multi-label")."""
    from edokit import Annotations

    people = small_people(n, annotators=annotators)
    if kind == "nominal":
        return people
    rng = np.random.default_rng(1)
    table = people.to_table().to_pydict()
    rude = np.array([_count_rude(text) for text in table["text"]])
    if kind == "ordinal":
        noise = rng.integers(-1, 2, len(rude))
        table["label"] = [str(point) for point in np.clip(1 + rude // 2 + noise, 1, 4)]
        return Annotations.from_table(table, scale="ordinal:1,2,3,4")
    size = np.array([len(text) for text in table["text"]])
    marks = {"rude": rude > 4 * rng.random(len(rude)), "long": size > np.median(size)}
    table["label"] = []
    for i in range(len(rude)):
        labels = [name for name, is_marked in marks.items() if is_marked[i]]
        table["label"].append(",".join(labels) or "[]")
    return Annotations.from_table(table, scale="multi-label:rude,long,odd")


def _count_rude(text: str) -> int:
    return sum(word in RUDE for word in text.split())


class PriorMember(Member):
    """Always answers the mean of its targets; the smallest possible recipe."""

    capabilities = Capabilities(multi_label=True)

    def __init__(self, n_classes: int, *, weight: float = 1.0, note: str = "") -> None:
        self.n_classes = n_classes
        self.weight = weight
        self.note = note
        self.answer: Floats = np.zeros(n_classes)

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        if self.note:
            with open(self.note, "a", encoding="utf-8") as stream:
                stream.write(f"{random_state}\n")
        self.answer = data.targets(0).mean(axis=0)
        if progress is not None:
            progress(1, 1, "epoch 1, dev CE 0.5")
        return self

    @property
    def history(self) -> Sequence[Mapping[str, Any]]:
        return [{"epoch": 1, "dev_ce": 0.5}]

    def predict_proba(
        self, texts: Sequence[str], context: Any = None, annotators: Any = None
    ) -> Floats:
        return np.tile(self.answer, (len(texts), 1))

    def save(self, folder: Path) -> None:
        np.save(folder / "answer.npy", self.answer)

    @classmethod
    def load(cls, folder: Path) -> Any:
        answer = np.load(folder / "answer.npy")
        member = cls(len(answer))
        member.answer = answer
        return member


class PeopleMember(PriorMember):
    """Knows the mean answer of every annotator, and can answer for some of them."""

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        annotations = data.annotations
        labels = np.eye(self.n_classes)[annotations.label_codes]
        self.people = {
            name: labels[annotations.annotator_codes == code].mean(axis=0)
            for code, name in enumerate(annotations.annotators)
        }
        return self

    @property
    def known_annotators(self) -> tuple[str, ...]:
        return tuple(self.people)

    def predict_proba(
        self,
        texts: Sequence[str],
        context: Sequence[str] | None = None,
        annotators: Sequence[Iterable[str]] | None = None,
    ) -> Floats:
        everyone = list(self.people)
        if annotators is None:
            annotators = [everyone for _ in texts]
        answers = []
        for names in annotators:
            known_names = [name for name in names if name in self.people] or everyone
            answers.append(np.mean([self.people[name] for name in known_names], axis=0))
        return np.array(answers)

    def save(self, folder: Path) -> None:
        np.savez(folder / "people.npz", **self.people)

    @classmethod
    def load(cls, folder: Path) -> Any:
        with np.load(folder / "people.npz") as kept:
            member = cls(2)
            member.people = {name: kept[name] for name in kept.files}
        return member


class PaidMember(PriorMember):
    """Costs money for every text."""

    requests = 0

    def predict_proba(
        self, texts: Sequence[str], context: Any = None, annotators: Any = None
    ) -> Floats:
        self.requests += len(texts)
        return super().predict_proba(texts)

    @property
    def details(self) -> Mapping[str, Any]:
        return {"model": "tiny", "cost": 0.25, "requests": self.requests, "rows": [1, 2]}


class SeenMember(PriorMember):
    """Answers 1 for texts that it learned from, else 0."""

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        self.seen = set(data.texts)
        return self

    def predict_proba(
        self, texts: Sequence[str], context: Any = None, annotators: Any = None
    ) -> Floats:
        is_seen = np.array([text in self.seen for text in texts], dtype=float)
        return np.column_stack([1 - is_seen, is_seen])


class FailingMember(PriorMember):
    """Some members of a group fail: those with an odd seed, unless a file says that all is well."""

    def __init__(self, n_classes: int, *, cured: str = "") -> None:
        super().__init__(n_classes)
        self.cured = cured

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        if random_state % 2 and not (self.cured and Path(self.cured).exists()):
            raise RuntimeError("the dog ate\nthe weights")
        return super().fit(data, random_state=random_state, progress=progress)


class DyingMember(PriorMember):
    """Members with an odd seed end their process."""

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        if random_state % 2:
            os._exit(1)
        return super().fit(data, random_state=random_state, progress=progress)


class SlowMember(PriorMember):
    """Takes a while to train."""

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        super().fit(data, random_state=random_state, progress=progress)
        time.sleep(0.2)
        return self


class BrokenMember(PriorMember):
    """Gives answers that are not probabilities."""

    def predict_proba(
        self, texts: Sequence[str], context: Any = None, annotators: Any = None
    ) -> Floats:
        return np.full((len(texts), self.n_classes), np.nan)


class EpochMember(PriorMember):
    """Asks for targets at every epoch and for dev texts."""

    capabilities = Capabilities(epochs=True, multi_label=True)

    def __init__(
        self, n_classes: int, *, weight: float = 1.0, note: str = "", epochs: int = 3
    ) -> None:
        super().__init__(n_classes, weight=weight, note=note)
        self.epochs = epochs

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Any:
        self.data = data
        self.answer = np.mean([data.targets(epoch) for epoch in range(3)], axis=(0, 1))
        return self


class NotARecipe:
    """Has no protocol."""


class ForeignClassifier(BaseEstimator):
    """A classifier from a package that is not scikit-learn."""

    def fit(self, features: Any, classes: Any) -> Any:
        self.classes_ = np.unique(classes)
        return self

    def predict_proba(self, features: Any) -> Floats:
        return np.full((features.shape[0], len(self.classes_)), 1 / len(self.classes_))
