"""How much of the disagreement answers for known annotators explain."""

from __future__ import annotations

import numpy as np
import pytest

from edokit import Annotations, Predictions, diagnose, simulate
from edokit._errors import InputError
from edokit.datasets.simulate.simulation import Simulation
from edokit.diagnosis.variance import explained


def answers(simulation: Simulation, known: bool) -> Predictions:
    """The true probabilities of each annotator who labelled an item, or of everybody."""
    people, p = simulation.annotations, simulation.annotator_probabilities()
    where = [list(simulation.annotators).index(name) for name in people.annotators]
    rows = p[people.item_codes, np.array(where)[people.annotator_codes]]
    if not known:
        rows = simulation.truth[people.item_codes]
    return Predictions.from_arrays(
        rows[:, None],
        layout="NKC",
        items=people.items[people.item_codes],
        annotators=people.annotators[people.annotator_codes],
        classes=people.classes,
        scale=people.scale,
    )


@pytest.mark.parametrize("regime", ["two-camps", "seven-points", "three-labels"])
def test_true_answers_explain_what_lasts_and_anonymous_ones_nothing(regime: str) -> None:
    simulation = simulate(regime, items=(1200, 1, 1))
    found = explained(answers(simulation, known=True), simulation.annotations)
    assert found["low"] < found["share"] < found["high"]
    # Of classes without an order the simulator knows the lasting part in the same units.
    if regime == "two-camps":
        known = simulation.variance()
        within = sum(known.values()) - known["item"]
        assert found["share"] == pytest.approx(1 - known["noise"] / within, abs=0.05)
    assert found["low"] > 0.1
    nobody = explained(answers(simulation, known=False), simulation.annotations)
    assert nobody["share"] == pytest.approx(0, abs=1e-12)


def test_what_would_help_follows_from_what_lasts() -> None:
    simulation = simulate("two-camps", items=(400, 1, 1))
    people = simulation.annotations
    nothing = diagnose(people, permutations=0, predictions=answers(simulation, known=False))
    assert nothing.explained is not None
    assert nothing.explained["helps"] == "labels"
    assert any("more labels per annotator" in line for line in nothing.lines())
    everything = diagnose(people, permutations=0, predictions=answers(simulation, known=True))
    assert everything.explained is not None
    assert everything.explained["helps"] == "annotators"
    assert diagnose(people, permutations=0).explained is None


def test_unanimous_labels_leave_nothing_to_explain() -> None:
    people = Annotations.from_matrix([["no", "no"], ["yes", "yes"]])
    predictions = Predictions.from_arrays(
        np.full((4, 1, 2), 0.5),
        layout="NKC",
        items=people.items[people.item_codes],
        annotators=people.annotators[people.annotator_codes],
        classes=["no", "yes"],
    )
    with pytest.raises(InputError, match="no disagreement"):
        explained(predictions, people)


def test_labels_help_only_where_clearly_less_is_explained_than_lasts() -> None:
    simulation = simulate("two-camps", items=(300, 1, 1))
    known, people = answers(simulation, known=True), simulation.annotations
    ends = explained(known, people)
    for lasting, helps in (
        (ends["high"] + 1e-6, "labels"),
        (ends["high"] - 1e-6, "annotators"),
        (ends["share"], "annotators"),
        (None, None),
    ):
        assert explained(known, people, lasting)["helps"] == helps
