"""Do attributes help to answer for people never seen? Leave-people-out, on train and dev.

    python benchmarks/unseen_people.py LEWIDI2025 --cache FOLDER     # a section of RESULTS.md

Members and weights are cross-fitted over items (`known_members.py`, whose cache it shares). The
people are dealt into five folds: effects are learned from the labels of four, and the people of the
fifth are answered by their attributes alone. Test files are not read.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from known_members import FOLDS, POOL, difference
from results import machine, write_section
from run import read

from edokit import Annotations, EDOEnsemble, Predictions
from edokit._types import Floats
from edokit.ensemble.people import PeopleEffects
from edokit.members import train_members
from edokit.members.training_data import TrainingData, fold_numbers
from edokit.metrics import ce_items

DATASETS = ("CSC", "MP")
KINDS = ("anonymous answer", "by attributes", "by whole effects")


def held_out_answers(annotations: Annotations, items: Predictions) -> Floats:
    """The pool's answer for each item, by weights learned on the items of the other folds."""
    folds = fold_numbers(TrainingData.from_annotations(annotations), FOLDS, 0)
    items = items.align(annotations.items)
    answers = np.empty((len(annotations.items), len(annotations.classes)))
    for fold in range(FOLDS):
        fit_items = np.flatnonzero(folds != fold)
        test_items = np.flatnonzero(folds == fold)
        ensemble = EDOEnsemble(people=False)
        ensemble.fit(items.take(fit_items), annotations.take(fit_items))
        answers[test_items] = ensemble.predict_proba(items.take(test_items))
    return answers


class LeftOut:
    """Losses of people whose labels were left out, and the attributes that answered for them."""

    def __init__(self, annotations: Annotations) -> None:
        self.annotations = annotations
        shape = (len(annotations), len(KINDS))
        self.row_losses = np.zeros(shape)
        self.used: set[str] = set()
        self.transfers: list[float] = []

    def by_person(self, kind: str) -> Floats:
        """Mean cross-entropy of each person's labels."""
        codes = self.annotations.annotator_codes
        counts = np.bincount(codes)
        sums = np.bincount(codes, self.row_losses[:, KINDS.index(kind)])
        return np.asarray(sums[counts > 0] / counts[counts > 0])


def leave_people_out(annotations: Annotations, anonymous: Floats) -> LeftOut:
    """Answer for the people of each fold by effects that are learned from the others."""
    people_folds = np.random.default_rng(0).permutation(len(annotations.annotators)) % FOLDS
    row_folds = people_folds[annotations.annotator_codes]
    levels_of = people_levels(annotations)
    scale = annotations.scale
    targets = np.eye(len(annotations.classes))[annotations.label_codes]
    left_out = LeftOut(annotations)
    for fold in range(FOLDS):
        fit_rows = np.flatnonzero(row_folds != fold)
        fit_annotations = replace(
            annotations,
            item_codes=annotations.item_codes[fit_rows],
            annotator_codes=annotations.annotator_codes[fit_rows],
            label_codes=annotations.label_codes[fit_rows],
        )
        people = PeopleEffects.fit(anonymous, fit_annotations)
        whole_effects = replace(people, transfer=1.0)
        left_out.transfers.append(people.transfer)
        for attribute in people.attributes:
            if attribute.share > 0:
                left_out.used.add(attribute.name)
        for person in np.flatnonzero(people_folds == fold):
            rows = np.flatnonzero(annotations.annotator_codes == person)
            if not len(rows):
                continue
            answers = anonymous[annotations.item_codes[rows]]
            levels = levels_of[person]
            by_kind = (
                answers,
                people.answers_by_attributes(answers, levels),
                whole_effects.answers_by_attributes(answers, levels),
            )
            row_targets = scale.rows(targets[rows])
            for column, p in enumerate(by_kind):
                left_out.row_losses[rows, column] = ce_items(scale.rows(p), row_targets)
    return left_out


def people_levels(annotations: Annotations) -> list[dict[str, str]]:
    """The known attributes of each person."""
    people: list[dict[str, str]] = [{} for _ in annotations.annotators]
    for attribute in annotations.people.attributes:
        for person, code in enumerate(attribute.codes):
            if code >= 0:
                people[person][attribute.name] = attribute.levels[code]
    return people


def main() -> None:
    """Train, measure, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lewidi2025", type=Path)
    parser.add_argument("--items", type=int, default=1200, help="the most items of each dataset")
    parser.add_argument("--cache", type=Path, default=Path("known-members"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["dataset", "people", "labels", *KINDS]
    heads += [f"{kind} less anonymous" for kind in KINDS[1:]]
    heads += ["carries over", "attributes with an effect"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in DATASETS:
        annotations = replace(read(arguments.lewidi2025, name, arguments.items), splits=None)
        folder = arguments.cache / name
        trained = train_members(annotations, POOL, out=folder, cross_fit=FOLDS, jobs=1)
        anonymous = held_out_answers(annotations, trained.predictions["fit"])
        left_out = leave_people_out(annotations, anonymous)
        by_kind = [left_out.by_person(kind) for kind in KINDS]
        cells = [name, str(len(by_kind[0])), f"{len(annotations):,}"]
        cells += [f"{losses.mean():.4f}" for losses in by_kind]
        cells += [difference(losses, by_kind[0]) for losses in by_kind[1:]]
        cells.append(", ".join(f"{part:g}" for part in left_out.transfers))
        cells.append(", ".join(sorted(left_out.used)) or "none")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    text = [HEAD.format(items=arguments.items), *lines, "", machine("scikit-learn")]
    write_section("People never seen (`unseen_people.py`)", "\n".join(text))


HEAD = """\
    python benchmarks/unseen_people.py LEWIDI2025 --items {items}

Cross-entropy of the labels of people whose labels were left out (mean of a person's, then over
people; five folds of people), train and dev, at most {items} items drawn at random. The pool's
answers are cross-fitted over items. By attributes: the anonymous answer shifted by all attributes
of the metadata files, whose effects were learned from the other people, times the part of them that
carries over to people never seen. That part is chosen in each fold by leaving people out again,
among those of the fit; beside it the whole effects. Differences have 95 % intervals over people;
▲ clearly better, ▼ clearly worse.
"""

if __name__ == "__main__":
    main()
