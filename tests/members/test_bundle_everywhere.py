"""Whatever members and ensemble are, their bundle predicts as they do, in Python and by command."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from member_cases import on_scale, small_people

import edokit
from commands import assert_one_line, edo, status
from edokit import Bundle, EDOEnsemble, EDOWarning, Panel, Predictions
from edokit._io.tables import read_table, write_table
from edokit.members import parse_groups, score_members, train_members
from edokit.members.loaded import LoadedMembers
from edokit.members.texts import Texts
from flat_options import flat_ensemble
from tests.errors import raises_code

pytestmark = pytest.mark.filterwarnings("ignore::edokit.EDOWarning")
PEOPLE = small_people()
NAMES = ("person-0", "person-1", "person-2")
TEXTS = ["a sunny garden", "awful rubbish nonsense", "bread and dull music", "noisy friend"]
ITEMS = [f"new-{k}" for k in range(len(TEXTS))]


def columns(table: pa.Table, start: str = "p_") -> Any:
    names = [name for name in table.column_names if name.startswith(start)]
    return np.column_stack([table[name].to_numpy() for name in names])


def case(kind: str, folder: Path) -> tuple[EDOEnsemble, dict[str, Any]]:
    """An ensemble of trained members, and what is asked of it."""
    people = PEOPLE
    pool = parse_groups("linear:3")
    fit: dict[str, Any] = {"lambda_reg": 0.1}
    how: dict[str, Any] = {"jobs": 1}
    name = "dev"
    asked = dict[str, Any]()
    if kind in ("ordinal", "multi-label"):
        people = on_scale(kind)
        asked = {"answer_for": "w1"} if kind == "ordinal" else {}
    elif kind == "cross-fitted":
        how["cross_fit"] = 3
        name = "fit"
    elif kind == "log pool of groups":
        bayes = {"estimator": "sklearn.naive_bayes.ComplementNB()"}
        pool += parse_groups("sklearn:2", options=bayes)
        fit |= {"groups": True, "pool": "log", "recalibrate": "temperature"}
        asked = {"answer_for": "md"}
    elif kind in ("annotators", "pairs+anonymous"):
        pool = parse_groups("nearest:2", options={"annotators": True})
        name = "dev-pairs" if kind != "annotators" else "dev"
    elif kind == "per-annotator group":
        pool = parse_groups("linear:3", supervision="per-annotator")
    trained = train_members(people, pool, out=folder / "members", **how)
    labels = people.split(*(["train", "dev"] if kind == "cross-fitted" else ["dev"]))
    if kind == "per-annotator group":
        asked_of = {item: list(NAMES) for item in labels.items}
        texts = Texts(tuple(labels.items), tuple(labels.texts))
        how = {"annotators": asked_of, "by_annotator": True}
        predictions = score_members(folder / "members", texts, **how).pairs()
        labels = labels.pairs()
    elif kind == "pairs+anonymous":
        predictions = trained.predictions[name].pairs(anonymous=True)
        labels = labels.pairs()
    else:
        predictions = trained.predictions[name]
        labels = labels.align(predictions.items)
    return flat_ensemble(fit).fit(predictions, labels), asked


KINDS = [
    *("nominal", "ordinal", "multi-label", "cross-fitted", "log pool of groups", "annotators"),
    *("pairs+anonymous", "per-annotator group"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_python_and_command_answer_as_members_and_ensemble_do(kind: str, tmp_path: Path) -> None:
    ensemble, asked = case(kind, tmp_path)
    ensemble.save(tmp_path / "ensemble")
    Bundle.create(tmp_path / "ensemble", tmp_path / "members", tmp_path / "bundle")
    bundle = edokit.load(tmp_path / "bundle")
    probabilities = bundle.predict_proba(TEXTS, **asked)
    write_table(pa.table({"item": ITEMS, "text": TEXTS}), tmp_path / "texts.parquet")
    more = ["--for", asked["answer_for"]] if asked else []
    given = ["--texts", tmp_path / "texts.parquet", *more, "--out"]
    members = ["--members", tmp_path / "members"]
    for name, words in (("bundle", []), ("ensemble", members)):
        out = tmp_path / f"{name}.parquet"
        assert status("predict", tmp_path / name, *words, *given, out) == 0
        table = read_table(out)
        assert table["item"].to_pylist() == ITEMS
        np.testing.assert_array_equal(columns(table), probabilities)
        described = bundle.describe(TEXTS)
        np.testing.assert_array_equal(table["spread"].to_numpy(), described.spread)
        assert table["label"].to_pylist() == described.labels.tolist()
    if kind not in ("pairs+anonymous", "per-annotator group"):
        scored = score_members(tmp_path / "members", TEXTS, ensemble.needed_members())
        np.testing.assert_array_equal(probabilities, ensemble.predict_proba(scored, **asked))


@pytest.mark.parametrize("kind", ["annotators", "pairs+anonymous", "per-annotator group"])
def test_panels_and_persons_answer_alike(kind: str, tmp_path: Path) -> None:
    ensemble, _ = case(kind, tmp_path)
    Bundle.create(ensemble, tmp_path / "members", tmp_path / "bundle")
    bundle = edokit.load(tmp_path / "bundle")
    assert bundle.known_annotators == NAMES
    each = [bundle.predict_proba(TEXTS, annotators=[name] * len(TEXTS)) for name in NAMES]
    panel = bundle.describe(TEXTS, panel=Panel(NAMES))
    assert panel.low is not None
    np.testing.assert_allclose(panel.probabilities, np.mean(each, axis=0), atol=1e-12)
    both = bundle.predict_proba(TEXTS, annotators=[NAMES[:2]] * len(TEXTS))
    np.testing.assert_allclose(both, np.mean(each[:2], axis=0), atol=1e-12)
    write_table(pa.table({"item": ITEMS, "text": TEXTS}), tmp_path / "texts.parquet")
    (tmp_path / "panel.txt").write_text("\n".join(NAMES))
    given = ["predict", tmp_path / "bundle", "--texts", tmp_path / "texts.parquet", "--out"]
    for out, words, wanted in (
        ("panel.parquet", ["--panel", tmp_path / "panel.txt"], panel.probabilities),
        ("person.parquet", ["--as", NAMES[1]], each[1]),
    ):
        assert status(*given, tmp_path / out, *words) == 0
        np.testing.assert_allclose(columns(read_table(tmp_path / out)), wanted, atol=1e-15)
    compared = ["--as", NAMES[0], "--as", NAMES[1]]
    assert status(*given, tmp_path / "two.parquet", *compared) == 0
    ask = [*given, tmp_path / "none.parquet"]
    assert_one_line(edo(*ask, "--as", "Bob"), "does not know annotator 'Bob'", repr(NAMES[0]))
    assert_one_line(edo(*ask, "--panel", "nobody.txt"), "there is no file nobody.txt")
    assert not (tmp_path / "none.parquet").exists()


# Texts


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("one")
    ensemble, _ = case("nominal", folder)
    return Bundle.create(ensemble, folder / "members", folder / "bundle")


@pytest.mark.parametrize(
    ("texts", "code", "fact"),
    [
        (["tea", " "], "missing-value", "text 2"),
        (["tea", 7], "not-a-text", "text 2 of 2 is int"),
        (["tea", None], "not-a-text", "text 2 of 2"),
        (["tea", float("nan")], "not-a-text", "text 2 of 2"),
        (["tea", "x" * 100_001], "too-long-text", "text 2 has 100,001"),
        (["tea", "half \ud800"], "invalid-unicode", "text 2"),
        (["tea", ("tea", "the post before")], "contexts-differ", "text 2"),
        (["tea", ["tea", "the post before"]], "contexts-differ", "text 2"),
        (["tea", ["a", "b", "c"]], "not-a-text", "text 2 of 2 is tuple"),
        ("tea", "single-value", "texts"),
        (7, "single-value", "texts is int"),
        ([], "missing-texts", ""),
    ],
)
def test_a_text_that_is_none_is_refused_by_its_position(
    texts: Any, code: str, fact: str, bundle: Bundle
) -> None:
    with raises_code(code, fact) as refused:
        bundle.predict_proba(texts)
    assert "xxx" not in str(refused.value)


def test_annotators_are_one_entry_per_text(bundle: Bundle) -> None:
    with raises_code("lengths-differ", "1 for 2 texts", "panel="):
        bundle.predict_proba(["tea", "bread"], annotators=["ann"])
    with raises_code("conflicting-options", "annotators", "panel"):
        bundle.predict_proba(["tea"], annotators=["ann"], panel=Panel(("ann",)))


def test_texts_in_parts_are_predicted_as_one(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [f"{text} {k}" for k in range(5) for text in TEXTS]
    whole = bundle.describe(many)
    monkeypatch.setattr("edokit.bundle.PART_SIZE", 3)
    parts = bundle.describe(many)
    np.testing.assert_array_equal(parts.probabilities, whole.probabilities)
    assert parts.items.tolist() == whole.items.tolist() == [str(k) for k in range(len(many))]


def test_a_large_file_is_predicted_some_rows_at_a_time(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [f"{text} {k}" for k in range(50) for text in TEXTS]
    table = pa.table({"text": many, "other": ["x" * 1000] * len(many)})
    pq.write_table(table, tmp_path / "texts.parquet", row_group_size=60)
    monkeypatch.setattr("edokit.bundle.PART_SIZE", 32)
    sizes: list[int] = []
    predict = LoadedMembers.predict

    def noted(self: Any, texts: Texts, **how: Any) -> Predictions:
        sizes.append(len(texts.texts))
        return predict(self, texts, **how)

    monkeypatch.setattr(LoadedMembers, "predict", noted)
    asked = ["--texts", tmp_path / "texts.parquet", "--out", tmp_path / "p.parquet"]
    assert status("predict", bundle.folder, *asked) == 0
    assert max(sizes) <= 32
    assert sum(sizes) == len(many)
    found = read_table(tmp_path / "p.parquet")
    np.testing.assert_array_equal(columns(found), bundle.predict_proba(many))
    assert found["item"].to_pylist() == [str(k) for k in range(len(many))]


def test_items_with_several_rows_are_predicted_once(bundle: Bundle, tmp_path: Path) -> None:
    rows = {"item": ["a", "b", "a"], "text": ["tea", "bread", "tea"]}
    pq.write_table(pa.table(rows), tmp_path / "texts.parquet")
    asked = ["--texts", tmp_path / "texts.parquet", "--out", tmp_path / "p.parquet"]
    assert status("predict", bundle.folder, *asked) == 0
    assert read_table(tmp_path / "p.parquet")["item"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("text", ["", None])
def test_a_text_that_is_missing_late_in_a_file_leaves_no_half_of_an_output(
    text: str | None,
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = {"item": [f"i{k}" for k in range(90)], "text": ["tea"] * 80 + [text] + ["tea"] * 9}
    pq.write_table(pa.table(rows), tmp_path / "texts.parquet")
    monkeypatch.setattr("edokit.bundle.PART_SIZE", 32)
    asked = ["--texts", tmp_path / "texts.parquet", "--out", tmp_path / "p.parquet"]
    assert status("predict", bundle.folder, *asked) == 2
    assert "'i80'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["texts.parquet"]


def test_members_or_no_texts_beside_a_bundle_are_refused(
    bundle: Bundle,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "t.txt").write_text("tea\n")
    out = ["--out", tmp_path / "p.csv"]
    for words in ([], ["--members", bundle.folder, "--texts", tmp_path / "t.txt"]):
        assert status("predict", bundle.folder, *words, *out) == 2
        assert "a bundle holds its members" in capsys.readouterr().err
    limited = [*out, "--texts", tmp_path / "t.txt", "--max-length", "2"]
    assert status("predict", bundle.folder, *limited) == 2
    assert "text 1 has 3 characters, more than 2" in capsys.readouterr().err


# The hub


def test_a_copy_of_the_folder_is_the_same_bundle(bundle: Bundle, tmp_path: Path) -> None:
    shutil.copytree(bundle.folder, tmp_path / "copy")
    again = Bundle.from_pretrained(tmp_path / "copy")
    assert again.version == bundle.version
    np.testing.assert_array_equal(again.predict_proba(TEXTS), bundle.predict_proba(TEXTS))
    (tmp_path / "copy" / "README.md").write_text("My own words.")
    assert edokit.load(tmp_path / "copy").version == bundle.version
    with raises_code("wrong-folder", "bundle.json"):
        Bundle.from_pretrained(tmp_path)


def test_a_hub_id_is_found_in_the_cache_and_never_downloaded_unasked(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("EDO_DOWNLOAD", raising=False)
    with raises_code("unknown-model", "EDO_DOWNLOAD=1"):
        Bundle.from_pretrained("ann/rude")
    # As huggingface_hub keeps it: names that are links to blobs.
    repo = tmp_path / "models--ann--rude"
    snapshot = repo / "snapshots" / ("0" * 40)
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("0" * 40)
    (repo / "blobs").mkdir()
    assert bundle.folder is not None
    for number, path in enumerate(sorted(bundle.folder.rglob("*"))):
        if path.is_file():
            name = snapshot / path.relative_to(bundle.folder)
            name.parent.mkdir(parents=True, exist_ok=True)
            blob = repo / "blobs" / str(number)
            blob.write_bytes(path.read_bytes())
            name.symlink_to(blob)
    found = Bundle.from_pretrained("ann/rude", revision="main")
    np.testing.assert_array_equal(found.predict_proba(TEXTS), bundle.predict_proba(TEXTS))
    shutil.copytree(snapshot, tmp_path / "copy")
    assert edokit.load(tmp_path / "copy").version == bundle.version
    with raises_code("outside-link"):
        edokit.load(snapshot)


def test_the_card_is_one_that_the_hub_reads(bundle: Bundle) -> None:
    hub = pytest.importorskip("huggingface_hub")
    assert bundle.folder is not None
    card = hub.ModelCard.load(bundle.folder / "README.md")
    assert card.data.library_name == "edokit"
    assert card.data.pipeline_tag == "text-classification"
    for words in ("# An EDO bundle", bundle.version, "linear-01", "KiB", "3 annotators"):
        assert words in card.text


def test_another_bundle_is_not_replaced_unless_asked_for(bundle: Bundle, tmp_path: Path) -> None:
    assert bundle.folder is not None
    shutil.copytree(bundle.folder, tmp_path / "out")
    members = bundle.folder.parent / "members"
    dev = score_members(members, list(PEOPLE.split("dev").texts))
    labels = PEOPLE.split("dev")
    named_predictions = Predictions.from_arrays(
        dev.probabilities,
        items=labels.items,
        members=dev.members,
        classes=dev.classes,
        layout="NKC",
    )
    other_ensemble = EDOEnsemble.from_weights([1.0, 0.0, 0.0], named_predictions, labels)
    with raises_code("existing-file", "overwrite=True"):
        Bundle.create(other_ensemble, members, tmp_path / "out")
    assert edokit.load(tmp_path / "out").version == bundle.version
    with warnings.catch_warnings():
        warnings.simplefilter("error", EDOWarning)
        made = Bundle.create(other_ensemble, members, tmp_path / "out", overwrite=True)
    assert edokit.load(tmp_path / "out").version == made.version != bundle.version
    assert made.members.names == ["linear-01"]
