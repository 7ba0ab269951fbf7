"""Scikit-learn classifiers pooled by EDO, tuned by a grid search: `run.py`."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from edokit import EDOClassifier, EDOEnsemble
from edokit.ensemble.classifier import soft_score
from edokit.metrics import ce

CLASSIFIERS = [
    ("logistic", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("neighbours", KNeighborsClassifier(15)),
    ("forest", RandomForestClassifier(25, min_samples_leaf=5, random_state=0)),
]


def main() -> None:
    X, answers, leaning = people_and_points(800)
    learn = slice(0, 400)
    unseen = slice(400, None)

    pool = EDOClassifier(CLASSIFIERS, ensemble=EDOEnsemble(ties="random"), cv=3, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), pool),
        {
            "edoclassifier__ensemble__pool": ["linear", "log"],
            "edoclassifier__ensemble__objective__reg": [0.01, 0.1],
        },
        scoring=soft_score,
        cv=3,
    )
    search.fit(X[learn], answers[learn])
    best = search.best_estimator_[-1]
    print("chosen:", {key.split("__")[-1]: value for key, value in search.best_params_.items()})
    for (name, _), weight in zip(CLASSIFIERS, best.weights_, strict=True):
        print(f"{name:>12} {weight:.2f}")

    majority = np.nanmean(answers[learn], axis=1) > 0.5
    voting = make_pipeline(StandardScaler(), VotingClassifier(CLASSIFIERS, voting="soft"))
    voting.fit(X[learn], majority)
    for name, model in (("majority vote", voting), ("EDO", search)):
        p = model.predict_proba(X[unseen])
        print(f"{name:>14}: cross-entropy to the people's leaning {ce(p, leaning[unseen]):.3f}")


def people_and_points(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points [N, 4], answers [N, 5] with gaps, and everybody's leaning [N, 2]."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 4))
    score = 1.5 * X[:, 0] + X[:, 1] * X[:, 2]
    strictness = np.array([-0.8, -0.4, 0.0, 0.4, 0.0])
    care = np.array([1.0, 1.0, 1.0, 1.0, 0.2])
    p = 1 / (1 + np.exp(-care * (score[:, None] + strictness)))
    answers = (rng.random(p.shape) < p).astype(float)
    skipped = rng.random(p.shape) < 0.3
    skipped[:, 2] = False  # the third person saw every point
    answers[skipped] = np.nan
    yes = p.mean(axis=1)
    return X, answers, np.column_stack([1 - yes, yes])


if __name__ == "__main__":
    main()
