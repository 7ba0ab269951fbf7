"""A real pretrained encoder on real annotations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_transformer import torch

from edokit import Annotations
from edokit.datasets.lewidi import read_lewidi
from edokit.members import MemberData
from edokit.members.recipes.transformer import TransformerMember
from edokit.metrics import ce

CONSTANT = 0.388
"""Test CE of always answering the training set's mean distribution."""


@pytest.fixture(scope="module")
def brexit(lewidi: Path) -> Annotations:
    return read_lewidi(lewidi / "HS-Brexit")


@pytest.mark.slow
@pytest.mark.lewidi
def test_a_few_steps_beat_the_constant_predictor(minilm: str, brexit: Annotations) -> None:
    train = brexit.split("train")
    test = brexit.split("test")
    some = train.take(np.random.default_rng(0).permutation(len(train.items))[:128])
    member = TransformerMember(
        2, model=minilm, learning_rate=2e-4, epochs=1, batch_size=8, max_length=32, device="cpu"
    )
    member.fit(MemberData(some.texts, lambda epoch: some.soft_labels), random_state=0)
    assert ce(member.predict_proba(test.texts), np.asarray(test.soft_labels)) < CONSTANT


@pytest.mark.lewidi
def test_its_embeddings_know_what_is_alike(minilm: str) -> None:
    from edokit.members.pretrained import load_backbone, load_tokenizer
    from edokit.members.recipes._tokens import Reader

    reader = Reader(load_tokenizer(minilm), 64)
    texts = ["The bus is late again.", "My train has a delay.", "I like this cake."]
    batch = reader.padded(reader(texts))
    mask = torch.from_numpy(batch["attention_mask"])
    with torch.no_grad():
        hidden = (
            load_backbone(minilm)
            .eval()(input_ids=torch.from_numpy(batch["input_ids"]), attention_mask=mask)
            .last_hidden_state
        )
    means = ((hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)).numpy()
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2]
