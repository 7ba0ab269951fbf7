"""The runner trains a recipe by what it declares, whatever its options are called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import PriorMember, small_people

from edokit.members import (
    Capabilities,
    Group,
    MemberData,
    TrainingOptions,
    parse_groups,
    train_members,
)
from edokit.members.groups import check_groups, default_members
from edokit.members.jobs import member_data
from edokit.members.loaded import LoadedMembers
from edokit.members.plan import make_plan
from edokit.members.registry import find_recipe
from edokit.members.training_data import TrainingData
from tests.errors import raises_code

PEOPLE = small_people(36)


class NamesakeMember(PriorMember):
    """Declares nothing; its options have the names of options of EDO's own recipes."""

    def __init__(
        self,
        n_classes: int,
        *,
        epochs: int = 3,
        device: str = "somewhere",
        base_url: str = "http://localhost:1/v1",
        annotators: bool = True,
        examples: int = 0,
        model: str = "a-model",
        timeout: float = 60.0,
        prompt: str = "",
        prompt_name: str = "",
    ) -> None:
        super().__init__(n_classes)
        self.epochs = epochs
        self.device = device
        self.base_url = base_url
        self.annotators = annotators
        self.examples = examples
        self.model = model
        self.timeout = timeout
        self.prompt = prompt
        self.prompt_name = prompt_name


class PassesMember(PriorMember):
    """Declares capabilities about options with names of its own."""

    capabilities = Capabilities(
        epochs=True, people="voices", operational=("patience",), titled=("question",)
    )

    def __init__(
        self,
        n_classes: int,
        *,
        passes: int = 2,
        voices: bool = False,
        patience: float = 1.0,
        question: str = "",
        question_name: str = "",
    ) -> None:
        super().__init__(n_classes)
        self.passes = passes
        self.voices = voices
        self.patience = patience
        self.question = question
        self.question_name = question_name


class LoadingMember(PriorMember):
    """Its load has parameters with the names of those that capabilities declare; none is."""

    @classmethod
    def load(cls, folder: Path, device: str = "own", trust: int = 3, models: int = 5) -> Any:
        assert (device, trust, models) == ("own", 3, 5)
        return super().load(folder)


class TrustingMember(PriorMember):
    """Declares that its load takes what users trust."""

    capabilities = Capabilities(trust=True)

    @classmethod
    def load(cls, folder: Path, *, trust: Sequence[str] = ()) -> Any:
        assert tuple(trust) == ("test_capabilities",)
        return super().load(folder)


class AskingMember(PriorMember):
    """Sends texts elsewhere, and learns nothing from items."""

    capabilities = Capabilities(endpoint=True, trained=False)

    @property
    def address(self) -> str:
        return "http://localhost:2/v1"


class UndeclarableMember(PriorMember):
    """Declares an option that it does not have."""

    capabilities = Capabilities(people="voices")


class UnloadableMember(PriorMember):
    """Declares a parameter that its load does not have."""

    capabilities = Capabilities(trust=True)


class MistakenMember(PriorMember):
    """Has capabilities of another type."""

    capabilities = ("epochs",)  # type: ignore[assignment]


NAMESAKE = "test_capabilities:NamesakeMember"
PASSES = "test_capabilities:PassesMember"
ASKING = "test_capabilities:AskingMember"


def fit_data(recipe: str, **group: Any) -> MemberData:
    """What the first member of a group trains on, in the first of two folds."""
    groups = check_groups([Group(recipe, **group)])
    plan = make_plan(TrainingData.from_annotations(PEOPLE), groups, TrainingOptions(cross_fit=2))
    return member_data(plan, plan.jobs[0])


@pytest.mark.parametrize("supervision", ["random-select", "per-annotator"])
def test_options_with_telling_names_change_nothing(supervision: str) -> None:
    predictions = []
    for recipe in (NAMESAKE, "member_cases:PriorMember"):
        group = Group(recipe, members=2, name="same", supervision=supervision)
        trained = train_members(PEOPLE, [group], cross_fit=3, jobs=1)
        assert not trained.failed
        predictions.append(trained.predictions)
    namesake, prior = predictions
    assert list(namesake) == list(prior)
    for split, table in prior.items():
        np.testing.assert_array_equal(namesake[split].probabilities, table.probabilities)


def test_an_undeclared_recipe_trains_on_all_items_and_draws_once() -> None:
    (group,) = parse_groups(NAMESAKE)
    assert (group.members, group.draw) == (10, "once")
    assert default_members(NAMESAKE) == 10
    data = fit_data(NAMESAKE)
    assert len(data.texts) == len(fit_data("member_cases:PriorMember").texts)
    with raises_code("unknown-choice", "draw"):
        parse_groups(NAMESAKE, draw="epoch")


def test_an_undeclared_device_is_an_option_like_any_other(tmp_path: Path) -> None:
    group = Group(NAMESAKE, members=1, options={"device": "elsewhere"})
    options = TrainingOptions(device="cpu", cross_fit=2)
    trained = train_members(PEOPLE, [group], out=tmp_path / "members", options=options)
    (described,) = trained.manifest["groups"]
    assert described["options"]["device"] == "elsewhere"
    assert described["options"]["epochs"] == 3


def test_an_undeclared_address_is_none() -> None:
    assert NamesakeMember(2).address == ""


def test_an_undeclared_option_is_part_of_the_fingerprint() -> None:
    data = TrainingData.from_annotations(PEOPLE)
    fingerprints = []
    for timeout in (60.0, 90.0):
        groups = check_groups([Group(NAMESAKE, members=1, options={"timeout": timeout})])
        plan = make_plan(data, groups)
        fingerprints.append(plan.fingerprint(plan.jobs[0]))
    assert fingerprints[0] != fingerprints[1]


def test_an_undeclared_option_gets_no_title() -> None:
    (group,) = check_groups([Group(NAMESAKE, options={"prompt": {"short": "Rude?"}})])
    assert group.options == {"prompt": "Rude?"}


def test_declared_epochs_hold_dev_texts_out_and_draw_every_epoch() -> None:
    (group,) = parse_groups(PASSES)
    assert group.draw == "epoch"
    data = fit_data(PASSES)
    assert data.dev_texts
    assert not {*data.texts} & {*data.dev_texts}
    assert (data.targets(0) != data.targets(1)).any()


def test_a_declared_option_learns_people() -> None:
    with raises_code("conflicting-options", "voices"):
        parse_groups(PASSES, supervision="per-annotator", options={"voices": "true"})
    assert parse_groups(PASSES, supervision="per-annotator")


def test_a_declared_operational_option_does_not_train_again() -> None:
    data = TrainingData.from_annotations(PEOPLE)
    fingerprints = []
    for patience in (1.0, 2.0):
        groups = check_groups([Group(PASSES, members=1, options={"patience": patience})])
        plan = make_plan(data, groups)
        fingerprints.append(plan.fingerprint(plan.jobs[0]))
    assert fingerprints[0] == fingerprints[1]


def test_a_declared_option_gets_a_title() -> None:
    (group,) = check_groups([Group(PASSES, options={"question": {"short": "Rude?"}})])
    assert group.options == {"question": "Rude?", "question_name": "short"}


def test_a_declared_endpoint_is_asked_once_and_says_where(tmp_path: Path) -> None:
    (group,) = parse_groups(ASKING)
    assert group.members == 1
    with raises_code("identical-members"):
        parse_groups(ASKING, members=2)
    trained = train_members(PEOPLE, [group], out=tmp_path, cross_fit=3)
    assert not trained.failed
    assert not list((tmp_path / "members").rglob("fold-*"))
    loaded = LoadedMembers(tmp_path, trust=["test_capabilities"])
    assert loaded.endpoints == ("http://localhost:2/v1",)


@pytest.mark.parametrize("recipe", ["LoadingMember", "TrustingMember"])
def test_load_gets_what_is_declared(recipe: str, tmp_path: Path) -> None:
    group = Group(f"test_capabilities:{recipe}", members=1)
    train_members(PEOPLE, [group], out=tmp_path)
    loaded = LoadedMembers(tmp_path, device="cpu", trust=["test_capabilities"]).load()
    assert loaded.predict(["a fine day"]).probabilities.shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("recipe", "fact"),
    [
        ("test_capabilities:UndeclarableMember", "'voices'"),
        ("test_capabilities:UnloadableMember", "'trust'"),
        ("test_capabilities:MistakenMember", "capabilities = ('epochs',)"),
    ],
)
def test_wrong_declarations_are_errors(recipe: str, fact: str) -> None:
    with raises_code("invalid-plugin", fact):
        find_recipe(recipe)
