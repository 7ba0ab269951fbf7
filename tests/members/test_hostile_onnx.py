"""ONNX files made to read other files, to take much memory, or to return what is no vector."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edokit import InputError
from edokit.members.recipes.encoder import Encoder, embed

pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")
onnx = pytest.importorskip("onnx")
helper = onnx.helper
TensorProto = onnx.TensorProto

WORDS = {"[UNK]": 0, "[PAD]": 1, "bus": 2}
SIZE = 8
LOOK_UP = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An encoder's folder that lacks its ONNX file."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "onnx").mkdir()
    return tmp_path


def write_model(folder: Path, nodes: list[Any], *tensors: Any) -> Path:
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
    hidden = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", "size"]
    )
    graph = helper.make_graph(nodes, "encoder", [ids], [hidden], list(tensors))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    (folder / "onnx" / "model.onnx").write_bytes(model.SerializeToString())
    return folder


def external_table(location: str) -> Any:
    """A table of vectors whose numbers are in another file."""
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[len(WORDS), SIZE])
    table.data_location = TensorProto.EXTERNAL
    table.external_data.add(key="location", value=location)
    table.external_data.add(key="length", value=str(4 * len(WORDS) * SIZE))
    return table


def refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """The message, which is all that is said."""
    with pytest.raises(InputError) as caught:
        Encoder(str(folder))(["bus"])
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert capfd.readouterr().err == ""
    return message


def test_numbers_beside_the_model_are_read(folder: Path) -> None:
    numbers = np.ones((len(WORDS), SIZE), np.float32)
    (folder / "onnx" / "numbers").write_bytes(numbers.tobytes())
    write_model(folder, [LOOK_UP], external_table("numbers"))
    np.testing.assert_allclose(Encoder(str(folder))(["bus"]), SIZE**-0.5)


@pytest.mark.parametrize("form", ["dots", "absolute", "link"])
def test_a_file_elsewhere_is_not_read(
    form: str,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capfd: pytest.CaptureFixture[str],
) -> None:
    private = tmp_path_factory.mktemp("private") / "private"
    private.write_bytes(np.ones((len(WORDS), SIZE), np.float32).tobytes())
    location = str(private)
    if form == "dots":
        location = os.path.relpath(private, folder / "onnx")
    if form == "link":
        (folder / "onnx" / "numbers").symlink_to(private)
        location = "numbers"
    write_model(folder, [LOOK_UP], external_table(location))
    assert "can't be loaded" in refused(folder, capfd)


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_a_pipe_is_not_read(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(folder / "onnx" / "numbers")
    write_model(folder, [LOOK_UP], external_table("numbers"))
    assert "can't be loaded" in refused(folder, capfd)


def test_a_table_of_terabytes_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[1 << 40, SIZE])
    table.raw_data = bytes(4 * SIZE)
    write_model(folder, [LOOK_UP], table)
    assert "can't be loaded" in refused(folder, capfd)
    shape = onnx.numpy_helper.from_array(np.array([1 << 40, SIZE]), "shape")
    write_model(folder, [helper.make_node("ConstantOfShape", ["shape"], ["table"]), LOOK_UP], shape)
    assert "can't be loaded" in refused(folder, capfd)


def test_an_operator_of_somebody_else_is_refused(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    node = helper.make_node("Run", ["input_ids"], ["last_hidden_state"], domain="com.example")
    assert "can't be loaded" in refused(write_model(folder, [node]), capfd)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(
    number: float, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = np.full((len(WORDS), SIZE), number, np.float32)
    write_model(folder, [LOOK_UP], onnx.numpy_helper.from_array(table, "table"))
    assert "not finite" in refused(folder, capfd)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", 5),
        ("modules.json", [{"type": "sentence_transformers.models.Transformer"}]),
        ("tokenizer_config.json", []),
        ("tokenizer_config.json", {"model_max_length": "many"}),
        ("sentence_bert_config.json", {"max_seq_length": "many"}),
        ("config_sentence_transformers.json", {"prompts": [1], "default_prompt_name": "x"}),
    ],
)
def test_settings_of_another_form_are_refused_in_one_line(
    name: str, content: object, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_model(folder, [LOOK_UP], onnx.numpy_helper.from_array(np.ones((2, SIZE)), "table"))
    (folder / name).write_text(json.dumps(content))
    assert str(folder) in refused(folder, capfd)
    with pytest.raises(InputError):
        embed(["bus"], str(folder))
