"""Encoders run on onnxruntime where there is an ONNX file, with the vectors that torch gives."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import edokit
from edokit import MissingExtraError
from edokit.members import parse_groups, train_members
from edokit.members.recipes import _onnx
from edokit.members.recipes.encoder import Encoder, _TorchEncoder, embed, runs_on_onnx
from tests.errors import raises_code

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from member_cases import small_people
from onnx_files import with_onnx

pytestmark = pytest.mark.usefixtures("own_cache")
TEXTS = ["lovely day", "you are late again please stop it", "nice", "", "Bus " * 60, "語 ß \ud800"]


@pytest.fixture(scope="module")
def exported(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny encoder with an ONNX file."""
    return with_onnx(model, tmp_path_factory.mktemp("exported") / "tiny")


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(exported, tmp_path / "tiny")


def vectors_of_torch(folder: Path, texts: list[str]) -> _onnx.Vectors:
    valid = [text.encode("utf-8", "replace").decode() for text in texts]
    return _onnx.unit_length(_TorchEncoder(str(folder), folder, "cpu").encode(valid))


def test_both_back_ends_give_the_vectors_of_real_weights(minilm: str, tmp_path: Path) -> None:
    folder = with_onnx(minilm, tmp_path / "minilm")
    assert runs_on_onnx(folder, None)
    texts = ["The bus is late again.", *TEXTS, "a long text, which is cut " * 60]
    np.testing.assert_allclose(
        Encoder(str(folder))(texts), vectors_of_torch(folder, texts), atol=1e-5
    )


MODULE = "sentence_transformers.models."
LAYOUTS = {
    "no modules": {},
    "mean": {"pooling_mode_mean_tokens": True},
    "first token": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    "several": {"pooling_mode_max_tokens": True, "pooling_mode_mean_sqrt_len_tokens": True},
    "as version 6 writes it": {"pooling_mode": "max", "embedding_dimension": 16},
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_of_the_folder_decides_on_both_back_ends(name: str, folder: Path) -> None:
    if name != "no modules":
        kinds = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
        modules = [
            {"idx": k, "name": str(k), "path": path, "type": f"{MODULE}{kind}"}
            for k, (kind, path) in enumerate(kinds.items())
        ]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir()
        settings = {"word_embedding_dimension": 16} | LAYOUTS[name]
        if "embedding_dimension" in settings:
            del settings["word_embedding_dimension"]
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
        limits = {"max_seq_length": 5, "do_lower_case": True}
        (folder / "sentence_bert_config.json").write_text(json.dumps(limits))
        prompts = {"prompts": {"query": "please "}, "default_prompt_name": "query"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    texts = [*TEXTS, "LOVELY Day", "lovely day you are late"]
    assert runs_on_onnx(folder, None)
    expected = vectors_of_torch(folder, texts)
    np.testing.assert_allclose(Encoder(str(folder))(texts), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", [{"type": f"{MODULE}Transformer", "path": ""}]),
        (
            "modules.json",
            [
                {"type": f"{MODULE}{kind}", "path": ""}
                for kind in ("Transformer", "Pooling", "Dense")
            ],
        ),
        (
            "modules.json",
            [
                {"type": f"{MODULE}Transformer", "path": "../other"},
                {"type": f"{MODULE}Pooling", "path": ""},
            ],
        ),
    ],
)
def test_other_layouts_are_left_to_sentence_transformers(
    file: str, content: list[object], folder: Path
) -> None:
    (folder / file).write_text(json.dumps(content))
    assert not runs_on_onnx(folder, None)


def test_torch_computes_where_something_is_missing(
    folder: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not runs_on_onnx(Path(model), None)
    assert not runs_on_onnx(folder, "cuda")
    vectors = embed(TEXTS, str(folder))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        assert not runs_on_onnx(folder, None)
        np.testing.assert_allclose(embed(TEXTS, str(folder)), vectors, atol=1e-5)
        patch.setitem(sys.modules, "torch", None)
        with raises_code("missing-package", "onnxruntime", ".[encoder]", kind=MissingExtraError):
            Encoder(str(folder))
    (folder / "tokenizer.json").unlink()
    assert not runs_on_onnx(folder, None)


def test_a_damaged_file_is_one_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "onnx" / "model.onnx").write_bytes(b"cut")
    with raises_code("unloadable-model") as raised:
        Encoder(str(folder))
    assert "\n" not in str(raised.value)
    assert capfd.readouterr().err == ""


def test_a_quantised_file_is_used_if_it_agrees(folder: Path, model: str, tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    full = folder / "onnx" / "model.onnx"
    quantised = folder / "onnx" / "model_int8.onnx"
    # Dynamic quantisation: what a text's vector is depends on the texts beside it.
    quantize_dynamic(str(full), str(quantised))
    assert _onnx.load.__wrapped__(model, folder).file == full
    # One with the full model's answers stands for a good static one.
    shutil.copy(full, quantised)
    assert _onnx.load.__wrapped__(model, folder).file == quantised
    other = "model_int8_arm64.onnx"
    if _onnx.platform.machine().lower() in ("arm64", "aarch64"):
        other = "model_int8_avx512.onnx"
    quantised.rename(quantised.with_name(other))
    assert _onnx.load.__wrapped__(model, folder).file == full


WITHOUT_TORCH = """
import sys
BLOCKED = ("torch", "transformers", "sentence_transformers", "huggingface_hub", "onnx")
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name in BLOCKED:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotInstalled())
import numpy as np
import edokit
bundle = edokit.load(sys.argv[1])
np.save(sys.argv[2], bundle.predict_proba(["such a rude bus", "nice"], unfamiliar="answer"))
"""


def test_a_bundle_answers_without_torch(folder: Path, tmp_path: Path) -> None:
    people = small_people()
    pool = parse_groups("encoder:1,nearest:1", options={"model": str(folder)})
    trained = train_members(people, pool, out=tmp_path / "members", jobs=1)
    dev = trained.predictions["dev"], people.split("dev")
    ensemble = edokit.EDOEnsemble.from_weights([0.5, 0.5], *dev)
    bundle = edokit.Bundle.create(ensemble, tmp_path / "members", tmp_path / "bundle")
    names = [path.name for path in (tmp_path / "bundle" / "models").rglob("*.*")]
    assert "model.onnx" in names
    assert not any(name.endswith(".safetensors") for name in names)
    shutil.rmtree(folder)
    answers = tmp_path / "answers.npy"
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "bundle"), str(answers)]
    subprocess.run(command, check=True)
    expected = bundle.predict_proba(["such a rude bus", "nice"], unfamiliar="answer")
    np.testing.assert_allclose(np.load(answers), expected, atol=1e-6)
