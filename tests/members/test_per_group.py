"""Per-group supervision: a member for each level of an attribute of the annotators."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import printed
from edokit import (
    Annotations,
    Bundle,
    EDOEnsemble,
    EDOWarning,
    fit,
    read_annotations,
    read_predictions,
    train_members,
)
from edokit._io.tables import write_table
from edokit.members import Group, parse_groups
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore:.* tied:edokit._errors.EDOWarning")
COUNTRIES = ("DE", "FR", "US")


def voters(sizes: dict[str, int]) -> Annotations:
    """Sixty texts with two labels of each country: Germans say yes to tea, others to rain."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(60):
        word = "tea" if k % 2 else "rain"
        for country, size in sizes.items():
            for who in rng.choice(size, min(size, 2), replace=False):
                row = {
                    "item": f"i{k}",
                    "annotator": f"{country or 'nowhere'}-{who}",
                    "label": int((word == "tea") == (country == "DE")),
                    "text": f"text {k} {word}",
                    "split": "train" if k < 40 else "dev",
                    "country": country,
                }
                rows.append(row)
    return Annotations.from_table({name: [row[name] for row in rows] for name in rows[0]})


def per_country(recipe: str = "linear", **changes: object) -> list[Group]:
    return [Group(recipe, supervision="per-group", attribute="country", **changes)]  # type: ignore[arg-type]


def test_each_level_has_a_member_that_learns_from_its_annotators_alone() -> None:
    trained = train_members(voters(dict.fromkeys(COUNTRIES, 6)), per_country())
    dev = trained.predictions["dev"]
    assert dev.members == ("linear-01-DE", "linear-02-FR", "linear-03-US")
    yes = dev.probabilities[:, :, 1]
    is_tea = np.array([int(item[1:]) % 2 == 1 for item in dev.items])
    assert (yes[is_tea, 0] > 0.5).all()
    assert (yes[~is_tea, 0] < 0.5).all()
    assert (yes[is_tea, 1:] < 0.5).all()
    assert (yes[~is_tea, 1:] > 0.5).all()
    (group,) = trained.manifest["groups"]
    assert (group["attribute"], group["levels"], group["members"]) == ("country", COUNTRIES, 3)
    assert trained.manifest["members"][1]["targets"] == {
        "supervision": "per-group",
        "draw": "once",
        "attribute": "country",
        "level": "FR",
        "annotators": 6,
    }


def test_unknown_levels_are_counted_and_nobody_learns_from_them() -> None:
    people = voters({"DE": 6, "FR": 6, "": 3})
    with pytest.warns(EDOWarning, match=r"country .*3 annotators .*80 labels"):
        trained = train_members(people, per_country())
    assert trained.predictions["dev"].members == ("linear-01-DE", "linear-02-FR")


def test_small_levels_are_refused_skipped_or_allowed() -> None:
    people = voters({"DE": 6, "FR": 6, "US": 2})
    with raises_code("small-levels", "1 of the 3 levels of country", "US: 2", "small_levels"):
        train_members(people, per_country())
    with pytest.warns(EDOWarning, match="no member is trained for them"):
        trained = train_members(people, per_country(), small_levels="skip")
    assert trained.predictions["dev"].members == ("linear-01-DE", "linear-02-FR")
    chosen = train_members(people, per_country(levels=("DE", "FR")))
    np.testing.assert_array_equal(
        chosen.predictions["dev"].probabilities, trained.predictions["dev"].probabilities
    )
    allowed = train_members(people, per_country(), min_annotators=2)
    assert len(allowed.predictions["dev"].members) == 3
    with (
        pytest.warns(EDOWarning, match="FR: 3"),
        raises_code("too-few-levels"),
    ):
        train_members(voters({"DE": 6, "FR": 3}), per_country(), small_levels="skip")


@pytest.mark.parametrize(
    ("changes", "code", "fact"),
    [
        ({"attribute": None}, "missing-option", "attribute='country'"),
        ({"attribute": "age"}, "unknown-attribute", "'age'"),
        ({"levels": ("DE", "PL")}, "unknown-attribute", "country=PL"),
        ({"levels": ("DE", "DE", "FR")}, "duplicate-name", "'DE'"),
        ({"levels": "DE"}, "invalid-option", "levels"),
        ({"members": 5}, "conflicting-options", "members=5"),
        ({"supervision": "soft"}, "conflicting-options", "attribute='country'"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], code: str, fact: str) -> None:
    fields = {"supervision": "per-group", "attribute": "country", **changes}
    with raises_code(code, fact):
        train_members(voters({"DE": 6, "FR": 6}), [Group("linear", **fields)])  # type: ignore[arg-type]


def test_recipes_that_learn_who_labelled_are_refused() -> None:
    with raises_code("conflicting-options"):
        per_country("nearest", options={"annotators": True})[0].checked()


def test_resuming_notices_that_a_level_has_other_annotators(tmp_path: Path) -> None:
    people = voters({"DE": 6, "FR": 6})
    train_members(people, per_country(), out=tmp_path)
    assert train_members(people, per_country(), out=tmp_path).resumed == 2
    countries = people.attributes["country"].copy()
    swapped = [list(people.annotators).index(name) for name in ("DE-0", "FR-0")]
    countries[swapped] = countries[swapped[::-1]]
    moved = replace(people, attributes={"country": countries})
    with raises_code("other-settings"):
        train_members(moved, per_country(), out=tmp_path)


def test_groups_are_fitted_bundled_and_asked_like_any_members(tmp_path: Path) -> None:
    people = voters(dict.fromkeys(COUNTRIES, 6))
    write_table(people.to_table(), tmp_path / "people.parquet")
    flags = ("--supervision", "per-group", "--attribute", "country", "--levels", "DE,US")
    out = tmp_path / "members"
    done = json.loads(printed("train", tmp_path / "people.parquet", *flags, "--out", out, "--json"))
    assert [member["targets"]["level"] for member in done["members"]] == ["DE", "US"]
    predictions = out / "predictions" / "dev.npz"
    assert read_predictions(predictions).members == ("linear-01-DE", "linear-02-US")
    ensemble = fit(predictions, tmp_path / "people.parquet", split="dev", out=tmp_path / "ensemble")
    served = Bundle.create(tmp_path / "ensemble", out, tmp_path / "bundle")
    dev = people.split("dev")
    assert dev.texts is not None
    answers = served.predict_proba(list(dev.texts))
    np.testing.assert_allclose(
        answers, ensemble.predict_proba(read_predictions(predictions)), atol=1e-6
    )


def test_a_file_of_groups_names_attribute_and_levels(tmp_path: Path) -> None:
    path = tmp_path / "groups.toml"
    path.write_text(
        '[[group]]\nrecipe = "linear"\nsupervision = "per-group"\nattribute = "country"\n'
        'levels = ["FR", "DE"]\n[[group]]\nrecipe = "trees"\nmembers = 1\nsupervision = "soft"\n'
    )
    trained = train_members(voters(dict.fromkeys(COUNTRIES, 6)), parse_groups(str(path)))
    names = trained.predictions["dev"].members
    assert names == ("linear-01-FR", "linear-02-DE", "trees-01")


def test_a_member_per_gender_of_real_annotators(lewidi2025: Path) -> None:
    with pytest.warns(EDOWarning, match="held out"):
        people = read_annotations(lewidi2025 / "MP")
    items = np.random.default_rng(0).choice(len(people.items), 600, replace=False)
    people = people.take(np.sort(items))
    group = Group("linear", supervision="per-group", attribute="Gender")
    with raises_code("small-levels", "(Prefer not to say: 1)"):
        train_members(people, [group])
    with (
        pytest.warns(EDOWarning, match="Gender .*1 annotator"),
        pytest.warns(EDOWarning, match="no member is trained"),
    ):
        trained = train_members(people, [group], small_levels="skip")
    dev = trained.predictions["dev"]
    assert dev.members == ("linear-01-Female", "linear-02-Male")
    fitted = EDOEnsemble().fit(dev, people.split("dev"))
    assert fitted.weights_.sum() == pytest.approx(1)
