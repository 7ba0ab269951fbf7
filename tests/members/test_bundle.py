"""A bundle answers for raw text as its ensemble does for the predictions of its members."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from member_cases import small_people

import edokit
from commands import status
from edokit.bundle import is_bundle
from edokit.members import Group, parse_groups, score_members, train_members
from edokit.members.pretrained import check_model
from tests.errors import raises_code

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
    bundle = edokit.load(made / "bundle")
    ensemble = edokit.load(made / "ensemble")
    scored = score_members(made / "members", TEXTS, ensemble.needed_members())
    np.testing.assert_array_equal(bundle.predict_proba(TEXTS), ensemble.predict_proba(scored))
    assert list(bundle.predict(TEXTS)) == list(ensemble.predict(scored))
    found = bundle.describe(TEXTS)
    wanted = ensemble.describe(scored)
    for name in ("entropy", "spread", "labels"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert (bundle.classes, bundle.scale, bundle.known_annotators) == (("0", "1"), wanted.scale, ())


def test_members_without_weight_and_predictions_stay_out(made: Path) -> None:
    files = {path.relative_to(made / "bundle").as_posix() for path in made.glob("bundle/**/*")}
    assert "members/members/linear-02/linear.npz" in files
    assert not [name for name in files if "linear-01" in name or "predictions" in name]
    about = json.loads((made / "bundle" / "bundle.json").read_text())
    assert {name for name in about["files"] if "npz" in name} <= files


def copied(made: Path, out: Path) -> Path:
    import shutil

    return Path(shutil.copytree(made / "bundle", out / "bundle"))


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ("newer", "wrong-content", ("format is 99",)),
        ("missing", "damaged-file", ("'members/members/linear-02/linear.npz'",)),
        ("changed", "damaged-file", ("'ensemble/ensemble.json'",)),
        ("more", "damaged-file", ("'members/members/linear-02/fold-9/member",)),
        ("link", "outside-link", ("linear.npz",)),
        ("folder", "outside-link", ("members",)),
        ("pipe", "not-a-file", ("pipe",)),
        ("cut", "invalid-json", ("bundle.json",)),
    ],
)
def test_a_damaged_bundle_is_refused(
    made: Path, change: str, code: str, facts: tuple[str, ...], tmp_path: Path
) -> None:
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
    elif change == "pipe":
        os.mkfifo(member / "pipe")
    elif change == "folder":
        (folder / "members").rename(tmp_path / "outside")
        (folder / "members").symlink_to(tmp_path / "outside")
    else:
        (tmp_path / "outside.npz").write_bytes((member / "linear.npz").read_bytes())
        (member / "linear.npz").unlink()
        (member / "linear.npz").symlink_to(tmp_path / "outside.npz")
    with raises_code(code, *facts):
        edokit.load(folder)


def test_no_folder_of_a_person_is_in_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pretrained models that were given as folders are known by the last part of their names."""
    import shutil

    from tiny_transformer import tiny_model

    home = tmp_path / "home-of-ann"
    monkeypatch.setenv("EDO_CACHE", str(home / "cache"))
    model = tiny_model(home / "tiny")
    other = str(home / "other" / "tiny")
    shutil.copytree(model, other)
    config = Path(other) / "config.json"  # another model, which says where it came from
    about = {**json.loads(config.read_text()), "_name_or_path": str(home / "base")}
    config.write_text(json.dumps(about))
    pool = [
        *parse_groups("encoder:1", options={"model": model}),
        Group("encoder", 1, name="again", options={"model": other}),
        *parse_groups("transformer:1", options={"model": other, "epochs": 1}),
    ]
    trained = train_members(PEOPLE, pool, out=tmp_path / "members", jobs=1)
    given = trained.predictions["dev"], PEOPLE.split("dev")
    ensemble = edokit.EDOEnsemble.from_weights([1 / 3] * 3, *given)
    edokit.Bundle.create(ensemble, tmp_path / "members", tmp_path / "bundle")
    scored = score_members(tmp_path / "members", TEXTS)
    found = edokit.load(tmp_path / "bundle").predict_proba(TEXTS)
    np.testing.assert_allclose(found, ensemble.predict_proba(scored), atol=1e-6)
    for path in (tmp_path / "bundle").rglob("*.*"):
        content = path.read_bytes()
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                content = b"".join(map(archive.read, archive.namelist()))
        assert b"home-of-ann" not in content.replace(b"\0", b""), path
    models = json.loads((tmp_path / "bundle/bundle.json").read_text())["models"]
    assert [name.split("-")[0] for name in models] == ["tiny", "tiny"]
    assert "| tiny |" in (tmp_path / "bundle/README.md").read_text()


def test_heads_on_one_encoder_encode_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiny_transformer import tiny_model

    from edokit.members.recipes import encoder

    monkeypatch.setenv("EDO_CACHE", str(tmp_path / "cache"))
    model = tiny_model(tmp_path / "tiny")
    pool = [
        *parse_groups("encoder:2", options={"model": model}),
        *parse_groups("linear:1"),
        *parse_groups("nearest:1", options={"model": model}),
    ]
    trained = train_members(PEOPLE, pool, out=tmp_path / "members", jobs=1)
    given = trained.predictions["dev"], PEOPLE.split("dev")
    ensemble = edokit.EDOEnsemble.from_weights([0.25] * 4, *given)
    edokit.Bundle.create(ensemble, tmp_path / "members", tmp_path / "bundle")
    scored = score_members(tmp_path / "members", TEXTS)
    # The bundle holds the encoder: it needs neither the model nor the cache any more.
    (tmp_path / "tiny").rename(tmp_path / "elsewhere")
    (tmp_path / "cache").rename(tmp_path / "old cache")
    (tmp_path / "bundle").rename(tmp_path / "moved")
    bundle = edokit.load(tmp_path / "moved")
    asked: list[int] = []
    embed = encoder.Encoder.__call__

    def counted(self: Any, *args: Any) -> Any:
        asked.append(len(args[0]))
        return embed(self, *args)

    monkeypatch.setattr(encoder.Encoder, "__call__", counted)
    probabilities = bundle.predict_proba(TEXTS)
    assert asked == [len(TEXTS)]
    np.testing.assert_allclose(probabilities, ensemble.predict_proba(scored), atol=1e-6)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", '[{"type": "joblib.numpy_pickle", "path": ""}]'),
        ("modules.json", '[{"type": "sentence_transformers.models.Router", "path": ""}]'),
        ("config.json", '{"auto_map": {"AutoModel": "code.Model"}}'),
        ("2_Dense/config.json", '{"activation_function": "os.abort"}'),
        ("code.py", "raise SystemExit"),
        ("pytorch_model.bin", "weights"),
    ],
)
def test_models_that_name_code_are_refused(file: str, content: str, tmp_path: Path) -> None:
    expected = "untrusted-code" if file.endswith(".json") else "unsupported-model"
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    with raises_code(expected, file):
        check_model(tmp_path)


def test_a_list_of_training_data_beside_a_model_names_no_code(tmp_path: Path) -> None:
    (tmp_path / "data_config.json").write_text('[{"name": "questions.jsonl.gz", "lines": 9}]')
    check_model(tmp_path)


def test_a_bundle_never_decides_where_texts_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edokit.members import MemberData
    from edokit.members.recipes.llm import LanguageModel
    from edokit.members.spending import current_session

    address = "https://api.example.com/v1"
    trained = train_members(PEOPLE, parse_groups("linear:1"), out=tmp_path / "members", jobs=1)
    given = trained.predictions["dev"], PEOPLE.split("dev")
    ensemble = edokit.EDOEnsemble.from_weights([1.0], *given)
    folder = tmp_path / "members/members/linear-01"
    (folder / "linear.npz").unlink()
    data = MemberData(["tea"], lambda epoch: np.eye(2)[:1], classes=("0", "1"))
    LanguageModel(2, base_url=address, model="small").fit(data).save(folder)
    card = json.loads((folder / "member.json").read_text())
    (folder / "member.json").write_text(json.dumps({**card, "recipe": "llm", "sha256": {}}))
    manifest = json.loads((tmp_path / "members/manifest.json").read_text())
    manifest["members"][0]["recipe"] = "llm"
    (tmp_path / "members/manifest.json").write_text(json.dumps(manifest))

    def refused(*args: Any, **how: Any) -> None:
        raise AssertionError("a request")

    monkeypatch.setattr("edokit.members.recipes._endpoint.Endpoint.ask", refused)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    out = tmp_path / "bundle"
    with raises_code("untrusted-address", address):
        edokit.Bundle.create(ensemble, tmp_path / "members", out)
    assert not out.exists()
    edokit.Bundle.create(ensemble, tmp_path / "members", out, trust=[address])
    card = (out / "README.md").read_text()
    assert f"Texts are sent to** {address}" in card
    assert "| llm |" in card
    with raises_code("untrusted-address", address):
        edokit.load(out)
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    assert edokit.load(out).members.endpoints == (address,)
    budgets = []

    def answered(self: Any, texts: Any, annotators: Any = None) -> Any:
        budgets.append(current_session().budget.limit)
        return np.full((len(texts), 2), 0.5)

    monkeypatch.setattr(LanguageModel, "predict_proba", answered)
    (tmp_path / "texts.txt").write_text("tea\n")
    words = [out, "--texts", tmp_path / "texts.txt", "--out", tmp_path / "p.csv", "--budget", 0.5]
    assert (status("predict", *words), budgets) == (0, [0.5])


def test_the_same_members_make_the_same_bundle(made: Path, tmp_path: Path) -> None:
    second_bundle = edokit.Bundle.create(made / "ensemble", made / "members", tmp_path / "bundle")
    assert second_bundle.version == edokit.load(made / "bundle").version


@pytest.mark.parametrize("moved", range(4))
def test_one_that_was_interrupted_is_refused_and_made_again(
    made: Path, moved: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = made / "ensemble", made / "members", tmp_path / "bundle"
    left = iter(range(moved))
    replace = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        # Files are also replaced while they are written; here the parts of the bundle are meant.
        if Path(target).parent == given[2] and next(left, None) is None:
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            edokit.Bundle.create(*given)
    assert given[2].exists() == bool(moved)
    if moved:
        assert is_bundle(given[2])
    if moved < 3:
        with raises_code("damaged-file" if moved else "wrong-folder"):
            edokit.Bundle.load(given[2])
    second_bundle = edokit.Bundle.create(*given)
    assert edokit.load(given[2]).version == second_bundle.version
    assert sorted(path.name for path in given[2].iterdir()) == [
        "README.md",
        "bundle.json",
        "ensemble",
        "members",
    ]


def test_no_text_that_members_learned_from_is_in_it(made: Path) -> None:
    assert PEOPLE.texts is not None
    learned = {" ".join(text.split()[:2]) for text in PEOPLE.texts}
    for path in (made / "bundle").rglob("*"):
        if not path.is_file():
            continue
        parts = [path.read_bytes()]
        if path.suffix in (".npz", ".skops"):
            with zipfile.ZipFile(path) as inside:
                parts = [inside.read(name) for name in inside.namelist()]
        for part in parts:
            shown = part.decode("latin-1").replace("\0", "")
            assert not [words for words in learned if words in shown], path


def test_whose_answer_may_be_asked_wrongly_in_one_line(made: Path) -> None:
    from edokit import Panel

    bundle = edokit.load(made / "bundle")
    asked: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
        ({"annotators": ["ann", "ben"]}, "lengths-differ", ("2 for 1 text", "panel=")),
        ({"annotators": "ann"}, "lengths-differ", ("1 text",)),
        ({"panel": "ann"}, "single-value", ("panel",)),
        ({"panel": []}, "empty-panel", ("panel",)),
    ]
    for how, code, facts in asked:
        with raises_code(code, *facts):
            bundle.predict_proba(TEXTS[:1], **how)
    with pytest.warns(edokit.EDOWarning):
        listed = bundle.describe(TEXTS, panel=["ann", "ben"])
    with pytest.warns(edokit.EDOWarning):
        panel = bundle.describe(TEXTS, panel=Panel(("ann", "ben")))
    assert listed.to_table().equals(panel.to_table())
    # One person has one vote, and no share of votes.
    with pytest.warns(edokit.EDOWarning):
        table = bundle.describe(TEXTS, panel=["ann"]).to_table()
    assert "low_1" not in table.column_names


def test_what_is_no_bundle_is_said_of_bundles(made: Path, tmp_path: Path) -> None:
    for load in (edokit.Bundle.load, edokit.Bundle.from_pretrained):
        with raises_code("wrong-folder", "bundle.json", "`edo bundle`"):
            load(made / "ensemble")
    with raises_code("wrong-folder", "nowhere"):
        edokit.Bundle.load(tmp_path / "nowhere")


def test_a_classifier_is_no_ensemble_of_members(made: Path, tmp_path: Path) -> None:
    with raises_code("unsupported-type", "EDOClassifier", "recipe sklearn"):
        edokit.Bundle.create(edokit.EDOClassifier(), made, tmp_path / "out")  # type: ignore[arg-type]


def test_members_of_other_classes_are_refused_by_their_folder(made: Path, tmp_path: Path) -> None:
    p = edokit.Predictions.from_arrays(
        np.full((2, 1, 2), 0.5), layout="NKC", items=["a", "b"], members=["linear-02"],
        classes=["bad", "good"],
    )  # fmt: skip
    labels = edokit.Annotations.from_matrix([["bad"], ["good"]], items=["a", "b"])
    other_ensemble = edokit.EDOEnsemble().fit(p, labels)
    with raises_code("classes-differ", "/members", "'0', '1'", "'bad'"):
        edokit.Bundle.create(other_ensemble, made / "members", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()
