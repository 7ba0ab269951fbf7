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


def losses(annotations: Annotations, anonymous: Floats) -> tuple[Floats, Floats, list[str]]:
    """Mean cross-entropy of each person's labels: anonymous, by attributes; what was used."""
    people_folds = np.random.default_rng(0).permutation(len(annotations.annotators)) % FOLDS
    row_folds = people_folds[annotations.annotator_codes]
    levels_of = people_levels(annotations)
    scale = annotations.scale
    targets = np.eye(len(annotations.classes))[annotations.label_codes]
    plain = np.zeros(len(row_folds))
    by_attributes = np.zeros(len(row_folds))
    used: set[str] = set()
    for fold in range(FOLDS):
        kept = np.flatnonzero(row_folds != fold)
        seen = replace(
            annotations,
            item_codes=annotations.item_codes[kept],
            annotator_codes=annotations.annotator_codes[kept],
            **annotations.rows_of(kept, "label_codes", "label_probabilities"),
        )
        people = PeopleEffects.fit(anonymous, seen)
        used |= {attribute.name for attribute in people.attributes if attribute.share > 0}
        for person in np.flatnonzero(people_folds == fold):
            rows = np.flatnonzero(annotations.annotator_codes == person)
            if not len(rows):
                continue
            answers = anonymous[annotations.item_codes[rows]]
            plain[rows] = ce_items(scale.rows(answers), scale.rows(targets[rows]))
            shifted = people.answers_by_attributes(answers, levels_of[person])
            by_attributes[rows] = ce_items(scale.rows(shifted), scale.rows(targets[rows]))
    counts = np.bincount(annotations.annotator_codes, minlength=len(people_folds))
    has_labels = counts > 0
    means = []
    for row_losses in (plain, by_attributes):
        sums = np.bincount(annotations.annotator_codes, row_losses, minlength=len(people_folds))
        means.append(sums[has_labels] / counts[has_labels])
    return means[0], means[1], sorted(used)


def people_levels(annotations: Annotations) -> list[dict[str, str]]:
    """The attributes of each person that are known."""
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
    parser.add_argument("--items", type=int, default=1200, help="of each dataset at most so many")
    parser.add_argument("--cache", type=Path, default=Path("known-members"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["dataset", "people", "labels", "anonymous answer", "by attributes"]
    heads += ["by attributes less anonymous", "attributes with an effect in some fold"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in DATASETS:
        annotations = replace(read(arguments.lewidi2025, name, arguments.items), splits=None)
        folder = arguments.cache / name
        trained = train_members(annotations, POOL, out=folder, cross_fit=FOLDS, jobs=1)
        anonymous = held_out_answers(annotations, trained.predictions["fit"])
        plain, shifted, used = losses(annotations, anonymous)
        cells = [name, str(len(plain)), f"{len(annotations):,}"]
        cells += [f"{plain.mean():.4f}", f"{shifted.mean():.4f}", difference(shifted, plain)]
        lines.append(f"| {' | '.join([*cells, ', '.join(used) or 'none'])} |")
        print(lines[-1], flush=True)
    text = [HEAD.format(items=arguments.items), *lines, "", machine("scikit-learn")]
    write_section("People never seen (`unseen_people.py`)", "\n".join(text))


HEAD = """\
    python benchmarks/unseen_people.py LEWIDI2025 --items {items}

Cross-entropy of the labels of people whose labels were left out (mean of a person's, then over
people; five folds of people), train and dev, at most {items} items drawn at random. The pool's
answers are cross-fitted over items. By attributes: the anonymous answer shifted by all attributes
of the metadata files, whose effects were learned from the other people. Differences have 95 %
intervals over people; ▲ clearly better, ▼ clearly worse.
"""

if __name__ == "__main__":
    main()
