"""A transformer small enough to train in a test: random weights, a vocabulary of a few words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

# The suite runs beside itself: threads that wait for each other would cost more than they bring.
torch.set_num_threads(1)

from edokit.members import MemberData  # noqa: E402

PLAIN = ("bus", "late", "again", "lovely", "day", "you", "are", "stop", "it", "please", "thanks")
WORDS = (*PLAIN, "rude", "nice", "user", "agent", ":", "no")
LONGEST = 24


def tiny_model(folder: Path, decoder: bool = False) -> str:
    """Write a two-layer BERT, or a Gemma that sees the whole text, with its tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    vocabulary = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    input_names = ["input_ids", "attention_mask"]
    if not decoder:
        input_names.insert(1, "token_type_ids")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=LONGEST,
        model_input_names=input_names,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    if decoder:
        from transformers import Gemma3TextConfig, Gemma3TextModel

        config = Gemma3TextConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            intermediate_size=32,
            max_position_embeddings=LONGEST,
            initializer_range=0.2,
            pad_token_id=0,
            use_bidirectional_attention=True,
        )
        Gemma3TextModel(config).save_pretrained(folder)
        return str(folder)
    BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=LONGEST,
            initializer_range=0.2,
        )
    ).save_pretrained(folder)
    return str(folder)


def texts_and_classes(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Texts with a word that tells their class, and the classes."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, n).astype(np.int32)
    texts = []
    for code in classes:
        telling_word = ("nice", "rude")[code]
        words = [*rng.choice(PLAIN, rng.integers(1, 8)), telling_word, telling_word]
        texts.append(" ".join(words))
    return texts, classes


def lesson(n: int = 64, n_dev: int = 24, **given: object) -> MemberData:
    """A lesson that a tiny transformer learns in a few epochs."""
    texts, classes = texts_and_classes(n, 0)
    dev_texts, dev_classes = texts_and_classes(n_dev, 1)
    arguments = {
        "texts": texts,
        "targets": lambda epoch: np.eye(2)[classes],
        "dev_texts": dev_texts,
        "dev_soft_labels": np.eye(2)[dev_classes],
        "dev_hard_labels": dev_classes,
        **given,
    }
    return MemberData(**arguments)
