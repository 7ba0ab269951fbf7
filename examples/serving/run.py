"""From annotations to an endpoint, with commands and a plain client: `run.py [FOLDER]`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pandas as pd

import edokit

TEXTS = ["How kind of you.", "What a rude reply.", "The bus was late again."]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    people = edokit.simulate("two-camps", items=(200, 80, 60), random_state=0).annotations
    edokit.write_annotations(people, folder / "people.csv")
    edo(folder, "train", "people.csv", "--recipe", "linear", "--members", "3", "--out", "members")
    learn = ("--predictions", "members/predictions/dev.npz", "--annotations", "people.csv")
    edo(folder, "fit", *learn, "--split", "dev", "--out", "ensemble")
    edo(folder, "bundle", "ensemble", "--members", "members", "--out", "bundle")

    # In Python.
    in_python = edokit.load(folder / "bundle").predict_proba(TEXTS).tolist()

    # Many texts: Parquet in, Parquet out.
    table = pd.DataFrame({"item": ["a", "b", "c"], "text": TEXTS})
    table.to_parquet(folder / "texts.parquet")
    edo(folder, "predict", "bundle", "--texts", "texts.parquet", "--out", "answers.parquet")
    answers = pd.read_parquet(folder / "answers.parquet")
    in_batch = answers[["p_fine", "p_offensive"]].to_numpy().tolist()

    # Over HTTP.
    command = ["edo", "serve", "bundle", "--port", "0", "--json"]
    print("$", *command, flush=True)
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = json.loads(server.stdout.readline())["url"]  # one line, once it is ready
    predictions = ask(f"{url}/predict", {"texts": TEXTS})["predictions"]
    over_http = [list(prediction["probabilities"].values()) for prediction in predictions]
    with urllib.request.urlopen(f"{url}/metrics") as response:
        numbers = response.read().decode()
    server.send_signal(signal.SIGTERM)
    server.communicate()  # until it has ended

    for text, prediction in zip(TEXTS, predictions, strict=True):
        shares = ", ".join(f"{name}: {p:.2f}" for name, p in prediction["probabilities"].items())
        entropy = prediction["entropy"]
        print(f"{text:24} {shares}  entropy {entropy:.2f}, spread {prediction['spread']:.2f}")
    print("counted:", next(line for line in numbers.splitlines() if line.startswith("edo_texts_")))
    print("the same three times:", in_python == in_batch == over_http)
    print("exit status of the server:", server.returncode)


def ask(url: str, body: dict[str, list[str]]) -> dict[str, list[dict[str, dict[str, float]]]]:
    """Send a request, and return the answer."""
    content = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, content, headers)) as response:
        answer: dict[str, list[dict[str, dict[str, float]]]] = json.load(response)
    return answer


def edo(folder: Path, *words: str) -> None:
    """Run a command in the folder, as a shell would."""
    print("$ edo", *words, flush=True)
    subprocess.run(["edo", *words], cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "serving"))
