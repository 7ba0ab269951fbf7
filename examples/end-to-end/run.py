"""Train the members of one network and their weights together: `run.py [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from edokit import Annotations, EDOEnsemble, ItemArray, Objective, Predictions, evaluate, simulate
from edokit.metrics import ce
from edokit.torch import EDOHead

MEMBERS = 6
EPOCHS = 20


class Network(torch.nn.Module):
    """A shared layer over TF-IDF, a classifier for each member, and the ensemble on top."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.shared = torch.nn.Sequential(
            torch.nn.Dropout(0.3), torch.nn.Linear(n_features, 32), torch.nn.ReLU()
        )
        self.members = torch.nn.ModuleList(torch.nn.Linear(32, n_classes) for _ in range(MEMBERS))
        # A little reward for disagreement keeps members that share a layer apart.
        self.edo = EDOHead(MEMBERS, objective=Objective(f1=0.3, div=0.02, reg=0.03))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """The members' probabilities [B, K, C]."""
        state = self.shared(features)
        logits = torch.stack([member(state) for member in self.members], dim=1)
        return torch.softmax(logits.double(), dim=-1)


def main(folder: Path) -> None:
    torch.manual_seed(0)
    people = simulate("three-voices", random_state=0, items=(500, 150, 300)).annotations
    train, dev, test = (people.split(name) for name in ("train", "dev", "test"))
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(train.texts)
    network = Network(len(vectorizer.vocabulary_), len(people.classes))

    best_ce = np.inf
    best_state = network.state_dict()
    optimizer = torch.optim.Adam(
        [
            {"params": [*network.shared.parameters(), *network.members.parameters()], "lr": 3e-3},
            {"params": network.edo.parameters(), "lr": 3e-2},
        ],
        weight_decay=1e-4,
    )
    features = as_features(vectorizer, train)
    soft_labels = torch.tensor(np.asarray(train.soft_labels))
    hard_labels = torch.tensor(np.asarray(train.hard_labels(ties="random")), dtype=torch.int64)
    for epoch in range(EPOCHS):
        network.train()
        network.edo.set_epoch(epoch)
        for batch in torch.randperm(len(features)).split(32):
            loss = network.edo.loss(
                network(features[batch]), soft_labels[batch], hard_labels[batch]
            )
            optimizer.zero_grad()
            loss.total.backward()
            optimizer.step()
        dev_ce = ce(pooled(network, vectorizer, dev), dev.soft_labels)
        if dev_ce < best_ce:
            best_ce = dev_ce
            best_state = {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(best_state)
    print(f"size {network.edo.size_}, weights {network.edo.weights_.round(3).tolist()}")

    ensemble = EDOEnsemble.from_weights(
        network.edo.weights_,
        member_predictions(network, vectorizer, dev),
        dev,
        objective=network.edo.objective,
        ties="random",
    )
    ensemble.save(folder / "ensemble")
    result = evaluate(
        ensemble.predict_proba(member_predictions(network, vectorizer, test)),
        test,
        ensemble=ensemble,
        ties="random",
    )
    print(f"test CE of a constant answer {result.constant_metrics['ce']:.4f}")
    print(f"test CE of the ensemble      {result.metrics['ce']:.4f}")


def as_features(vectorizer: TfidfVectorizer, annotations: Annotations) -> torch.Tensor:
    """TF-IDF of the texts [N, F]."""
    return torch.tensor(vectorizer.transform(annotations.texts).toarray(), dtype=torch.float32)


@torch.no_grad()
def member_predictions(
    network: Network, vectorizer: TfidfVectorizer, annotations: Annotations
) -> Predictions:
    """What each member predicts for the items, by their ids."""
    network.eval()
    return Predictions.from_arrays(
        network(as_features(vectorizer, annotations)).numpy(),
        items=annotations.items,
        classes=annotations.classes,
        layout="NKC",
    )


@torch.no_grad()
def pooled(network: Network, vectorizer: TfidfVectorizer, annotations: Annotations) -> ItemArray:
    """What the ensemble predicts for the items, by their ids."""
    network.eval()
    probabilities = network.edo(network(as_features(vectorizer, annotations))).numpy()
    return ItemArray(probabilities, annotations.items, annotations.classes)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "end-to-end"))
