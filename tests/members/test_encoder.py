"""Vectors of a sentence encoder are computed once, and what is no encoder is refused."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from edokit import MissingExtraError
from edokit.members import MemberData
from edokit.members.pretrained import check_model, load_tokenizer
from edokit.members.recipes.encoder import Encoder, EncoderMember, embed, model_identity
from tests.errors import raises_code

pytestmark = pytest.mark.usefixtures("own_cache")
TEXTS = ["lovely day", "you are late again please stop it", "nice"]


def test_vectors_have_length_one(model: str) -> None:
    vectors = embed(TEXTS, model)
    assert vectors.shape == (3, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def test_the_same_texts_are_never_embedded_twice(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embed(TEXTS, model)
    monkeypatch.setattr(Encoder, "__call__", lambda *a: pytest.fail("embedded again"))
    np.testing.assert_array_equal(embed(TEXTS, model), first)
    with pytest.raises(pytest.fail.Exception):
        embed([*TEXTS, "bus"], model)


def test_another_model_in_the_same_place_is_another_model(model: str, tmp_path: Path) -> None:
    place = shutil.copytree(model, tmp_path / "model")
    before = model_identity(place)
    config = place / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    assert model_identity(place) != before


def test_weights_count_although_their_size_and_date_stay(model: str, tmp_path: Path) -> None:
    import os

    place = shutil.copytree(model, tmp_path / "model")
    weights = place / "model.safetensors"
    before = model_identity(place)
    held = weights.read_bytes()
    date = weights.stat().st_mtime_ns
    assert model_identity(place) == before
    weights.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
    os.utime(weights, ns=(date, date))
    assert model_identity(place) != before


def test_a_damaged_or_unwritable_cache_costs_time_alone(
    model: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embed(TEXTS, model)
    for file in own_cache.rglob("*.npy"):
        file.write_bytes(b"cut")
    np.testing.assert_allclose(embed(TEXTS, model), first)
    (own_cache.parent / "file").write_text("not a folder")
    monkeypatch.setenv("EDO_CACHE", str(own_cache.parent / "file"))
    np.testing.assert_allclose(embed(TEXTS, model), first)


def test_the_extra_is_named_where_it_is_missing(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with raises_code("missing-package", ".[transformers]", kind=MissingExtraError):
        embed(TEXTS, model)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with raises_code("unknown-model", "config.json"):
        embed(TEXTS, str(tmp_path))
    with raises_code("unknown-model", "nowhere"):
        embed(TEXTS, str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("x")
    with raises_code("unknown-model", str(tmp_path / "file")):
        embed(TEXTS, str(tmp_path / "file"))


def test_a_folder_with_a_damaged_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with raises_code("invalid-json", "config.json"):
        embed(TEXTS, str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with raises_code("unloadable-model"):
        embed(TEXTS, str(tmp_path))


MODULE = "sentence_transformers.models."


@pytest.mark.parametrize("place", ["pool", "members", "bundle"])
def test_code_that_a_model_names_does_not_run(place: str, model: str, tmp_path: Path) -> None:
    from member_cases import small_people

    import edokit
    from edokit.members import parse_groups, train_members

    planted = shutil.copytree(model, tmp_path / "model")
    pool = tmp_path / "pool.toml"
    pool.write_text(f'[[group]]\nrecipe = "encoder"\nmembers = 1\noptions.model = "{planted}"\n')
    people = small_people()
    out = tmp_path / "members"

    def plant(folder: Path) -> None:
        (folder / "planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
        kinds = [f"{MODULE}Transformer", "planted.Module"]
        modules = [{"idx": k, "name": str(k), "path": "", "type": t} for k, t in enumerate(kinds)]
        (folder / "modules.json").write_text(json.dumps(modules))

    if place == "pool":
        plant(planted)
        with raises_code("failed-member", "modules.json"):
            train_members(people, parse_groups(str(pool)), out=out)
    else:
        trained = train_members(people, parse_groups(str(pool)), out=out)
        if place == "members":
            plant(planted)
            with raises_code("untrusted-code", "modules.json"):
                edokit.score_members(out, ["a new text"])
        else:
            dev = trained.predictions["dev"], people.split("dev")
            ensemble = edokit.EDOEnsemble.from_weights([1.0], *dev)
            edokit.Bundle.create(ensemble, out, tmp_path / "bundle")
            (inside,) = (tmp_path / "bundle" / "models").iterdir()
            plant(inside)
            with raises_code("damaged-file"):
                edokit.load(tmp_path / "bundle")
            (inside / "planted.py").unlink()
            with raises_code("untrusted-code", "modules.json"):
                check_model(inside)
    assert not (tmp_path / "ran").exists()


def test_modules_of_the_library_are_loaded(model: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(model, device="cpu").save(str(tmp_path))
    assert (tmp_path / "modules.json").is_file()
    np.testing.assert_allclose(embed(TEXTS, str(tmp_path)), embed(TEXTS, model), atol=1e-6)


@pytest.mark.parametrize("recipe", ["encoder", "transformer"])
@pytest.mark.parametrize("part", ["normalizer", "post_processor"])
def test_a_damaged_tokenizer_is_one_line(
    recipe: str, part: str, model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    content = json.loads((folder / "tokenizer.json").read_text())
    special = {"SpecialToken": {"id": "[GONE]", "type_id": 0}}
    content[part] = {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": ""},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special],
            "pair": content["post_processor"]["pair"],
            "special_tokens": content["post_processor"]["special_tokens"],
        },
    }[part]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    load = Encoder if recipe == "encoder" else load_tokenizer
    with raises_code("unloadable-model", str(folder)) as raised:
        load(str(folder))
    assert "\n" not in str(raised.value)
    assert "panicked" not in capfd.readouterr().err


def test_pairs_are_the_vectors_of_both_parts_of_the_whole_and_how_far_apart_they_are(
    model: str,
) -> None:
    pairs = [("nice", "bus"), ("late", "")]
    features = EncoderMember(2, model=model, context=0.5)._features(pairs)
    assert features.shape == (2, 64)
    text, context, both, apart = np.split(features, 4, axis=1)
    np.testing.assert_allclose(np.linalg.norm(context, axis=1), 0.5, rtol=1e-5)
    np.testing.assert_allclose(both, embed(["bus\nnice", "late"], model), atol=1e-5)
    np.testing.assert_allclose(apart, np.abs(text - 2 * context), atol=1e-6)


@pytest.mark.parametrize(("option", "value"), [("strength", 0.0), ("context", -1.0)])
def test_options_below_their_bound_are_refused(option: str, value: float) -> None:
    with raises_code("invalid-number", f"{option} is {value}"):
        EncoderMember(2, **{option: value})


def test_texts_that_were_not_prepared_are_embedded(model: str) -> None:
    lesson = MemberData(
        TEXTS,
        lambda epoch: np.eye(2)[[0, 1, 0]],
        corpus=tuple(TEXTS),
    )
    member = EncoderMember(2, model=model).fit(lesson)
    assert member.predict_proba(["thanks"]).shape == (1, 2)
