"""A bundle answers for raw text as its ensemble does for the predictions of its members."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people

import edokit
from edokit._errors import InputError
from edokit.members import parse_groups, score_members, train_members

PEOPLE = small_people()
TEXTS = ["a sunny garden", "awful rubbish nonsense", "bread and dull music"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members, an ensemble of some of them, and their bundle."""
    folder: Path = tmp_path_factory.mktemp("bundle")
    bayes = {"estimator": "sklearn.naive_bayes.ComplementNB()"}
    pool = [*parse_groups("linear:3"), *parse_groups("sklearn:1", options=bayes)]
    trained = train_members(PEOPLE, pool, out=folder / "members", jobs=1)
    weights = [0.0, 0.25, 0.25, 0.5]
    given = trained.predictions["dev"], PEOPLE.split("dev")
    edokit.EDOEnsemble.from_weights(weights, *given).save(folder / "ensemble")
    edokit.Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder


def test_it_answers_as_ensemble_and_members_do(made: Path) -> None:
    bundle, ensemble = edokit.load(made / "bundle"), edokit.load(made / "ensemble")
    scored = score_members(made / "members", TEXTS, ensemble.needed_members())
    np.testing.assert_array_equal(bundle.predict_proba(TEXTS), ensemble.predict_proba(scored))
    assert list(bundle.predict(TEXTS)) == list(ensemble.predict(scored))
    found, wanted = bundle.describe(TEXTS), ensemble.describe(scored)
    for name in ("entropy", "spread", "labels"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert (bundle.classes, bundle.scale, bundle.known_annotators) == (("0", "1"), wanted.scale, ())


def test_members_without_weight_and_predictions_stay_out(made: Path) -> None:
    files = {path.relative_to(made / "bundle").as_posix() for path in made.glob("bundle/**/*")}
    assert "members/members/linear-02/linear.npz" in files
    assert not [name for name in files if "linear-01" in name or "predictions" in name]
    about = json.loads((made / "bundle" / "bundle.json").read_text())
    assert {name for name in about["files"] if "npz" in name} <= files
    assert about["seconds_per_text"] > 0


def copied(made: Path, out: Path) -> Path:
    import shutil

    return Path(shutil.copytree(made / "bundle", out / "bundle"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("newer", "format 99; .*install a newer edokit"),
        ("missing", r"1 of \d+ files is missing: 'members/members/linear-02/linear.npz'"),
        ("changed", "'ensemble/ensemble.json' is not what was bundled"),
        ("more", "not part of it: 'members/members/linear-02/fold-9/member"),
        ("link", "link that leads out"),
        ("cut", "bundle.json"),
    ],
)
def test_a_damaged_bundle_is_refused(made: Path, change: str, message: str, tmp_path: Path) -> None:
    folder = copied(made, tmp_path)
    member = folder / "members/members/linear-02"
    about: dict[str, Any] = json.loads((folder / "bundle.json").read_text())
    if change == "newer":
        (folder / "bundle.json").write_text(json.dumps({**about, "format": 99}))
    elif change == "cut":
        (folder / "bundle.json").write_text(json.dumps(about)[:50])
    elif change == "missing":
        (member / "linear.npz").unlink()
    elif change == "changed":
        content = (folder / "ensemble/ensemble.json").read_text()
        (folder / "ensemble/ensemble.json").write_text(content.replace("0.25", "0.35"))
    elif change == "more":
        (member / "fold-9").mkdir()
        (member / "fold-9/member.json").write_text("{}")
    else:
        (tmp_path / "outside.npz").write_bytes((member / "linear.npz").read_bytes())
        (member / "linear.npz").unlink()
        (member / "linear.npz").symlink_to(tmp_path / "outside.npz")
    with pytest.raises(InputError, match=message):
        edokit.load(folder)
