"""The paper's K ≤ min A_i: per-annotator members in training, and in the fit of their weights."""

from __future__ import annotations

import numpy as np
import pytest

from edokit import Annotations, EDOEnsemble, Exact, Gumbel, train_members
from edokit.members import parse_groups
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
GROUPS = parse_groups("linear:3", supervision="per-annotator")


def people(dev_annotators: int, train_annotators: int = 3) -> Annotations:
    """Sixty short texts; every third one in train, or in dev, has fewer annotators."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(60):
        split = "train" if k < 40 else "dev"
        count = 3
        if k % 3 == 0:
            count = train_annotators if split == "train" else dev_annotators
        for who in range(count):
            label = int(rng.random() < (0.8 if k % 2 else 0.2))
            text = f"text {k} {'tea' if k % 2 else 'rain'}"
            row = {"item": f"i{k}", "annotator": f"a{who}", "label": label, "text": text}
            rows.append({**row, "split": split})
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Annotations.from_table(columns)


def test_training_refuses_more_members_unless_told_to() -> None:
    labels = people(3, train_annotators=2)
    with raises_code("too-many-members", "3", "2"):
        train_members(labels, GROUPS)
    trained = train_members(labels, GROUPS, ignore_annotator_limit=True)
    # What was switched off in training is not asked again.
    EDOEnsemble(ties="random").fit(trained.predictions["dev"], labels.split("dev"))


def test_a_fit_refuses_more_members_than_its_items_have_annotators() -> None:
    labels = people(2)
    members = train_members(labels, GROUPS).predictions["dev"]
    dev = labels.split("dev")
    facts = ("3 per-annotator members", "2 annotators", "max_members=2", "max_members=3")
    with raises_code("too-many-members", *facts):
        EDOEnsemble(ties="random").fit(members, dev)
    with raises_code("too-many-members", *facts):
        EDOEnsemble("paper-fixed", ties="random").fit(members, dev)
    for solver in (Exact(max_members=2), Exact(max_members=3), Gumbel(max_members=2, epochs=1)):
        fitted = EDOEnsemble(solver=solver, ties="random").fit(members, dev)
        assert fitted.size_ <= solver.max_members
    # Members of another supervision, and items with annotators enough, are not limited.
    drawn = train_members(labels, parse_groups("linear:3")).predictions["dev"]
    EDOEnsemble(ties="random").fit(drawn, dev)
    enough = people(3)
    EDOEnsemble(ties="random").fit(
        train_members(enough, GROUPS).predictions["dev"], enough.split("dev")
    )
