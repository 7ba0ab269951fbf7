"""The default pool of a run: which groups of members are trained, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edokit._errors import EDOError
from edokit._io.atomic import whole_file
from edokit.members import Group
from edokit.members.pretrained import choose_device, local_folder, require_packages
from edokit.members.recipes.encoder import check_available
from edokit.pipeline.options import RunOptions


@dataclass(frozen=True)
class Ingredient:
    """A group of the default pool, and what it costs."""

    group: Group
    cost: float = 1.0
    """Training time of a member, relative to that of the single soft-label model."""

    def missing(self) -> str:
        """Why it can't be trained here; empty if it can."""
        recipe = self.group.recipe
        model = str(self.group.options.get("model", ""))
        try:
            if model:
                _check_model(recipe, model)
            if recipe == "transformer" and choose_device(None).type == "cpu":
                return "fine-tuning needs a GPU, and there is none here"
        except EDOError as error:
            return str(error)
        return ""


def _check_model(recipe: str, model: str) -> None:
    """Raise an error unless the model is here, and what computes it."""
    if recipe == "encoder":
        check_available(model)
        return
    local_folder(model)  # before torch is loaded
    require_packages(f"the recipe {recipe}")


EARLIER_NAMES = {
    "tfidf-strong": "bold",
    "tfidf-weak": "cautious",
    "tfidf-words": "words",
    "tfidf-random-select": "drawn",
    "tfidf-characters": "characters",
    "encoder-strong": "encoder-bold",
}
"""The name of each group in earlier versions, by its name today."""
ENCODER_GROUPS = ("encoder", "encoder-strong")
"""The groups on a sentence encoder."""


def _linear(
    name: str, cost: float, supervision: str = "soft", **options: float | bool
) -> Ingredient:
    """A group of one TF-IDF member."""
    group = Group("linear", 1, name, supervision, options=dict(options))
    return Ingredient(group, cost)


def default_pool(options: RunOptions) -> list[Ingredient]:
    """The groups of this quality, the most useful first (``benchmarks/run.py``).

    Groups on a sentence encoder need one in the options. When time is short, the last groups are
    left out.
    """
    trees = Group("trees", 1, "trees", "soft")
    pool = [
        _linear("tfidf-strong", 2.0, strength=20.0),
        Ingredient(trees, 5.0),
        _linear("tfidf-weak", 1.0, strength=1.0),
        _linear("tfidf-words", 1.0, words=2.0, strength=1.0),
        _linear("tfidf-random-select", 1.0, "random-select", strength=2.0),
    ]
    if options.quality != "fast" and options.encoder is not None:
        default_options = {"model": options.encoder}
        strong_options = {"model": options.encoder, "strength": 20.0}
        # The first one embeds the texts for both.
        pool[2:2] = [
            Ingredient(
                Group("encoder", 1, ENCODER_GROUPS[0], "soft", options=default_options), 30.0
            ),
            Ingredient(Group("encoder", 1, ENCODER_GROUPS[1], "soft", options=strong_options), 1.0),
        ]
    if options.quality in ("good", "best"):
        pool.append(_linear("tfidf-characters", 1.0, words=0.0))
    if options.quality == "best":
        tuned = Group("transformer", 3, "transformer", options={"model": options.transformer})
        pool.append(Ingredient(tuned, 500.0))
    return pool


def with_earlier_names(pool: Sequence[Ingredient], members: Path) -> list[Ingredient]:
    """The pool under the names of an earlier version, if the folder has members with such names.

    An unfinished run of that version thus goes on with the members that it has trained.
    """
    if not any(any(members.glob(f"{name}-??")) for name in EARLIER_NAMES.values()):
        return list(pool)
    renamed: list[Ingredient] = []
    for ingredient in pool:
        group = ingredient.group
        group = replace(group, name=EARLIER_NAMES.get(group.name, group.name))
        renamed.append(replace(ingredient, group=group))
    return renamed


def write_groups(groups: Sequence[Group], path: Path) -> None:
    """Write groups as the TOML file that ``edo train --recipe`` reads."""
    lines: list[str] = []
    for group in groups:
        lines.append("[[group]]")
        lines.append(f"name = {json.dumps(group.name)}")
        lines.append(f"recipe = {json.dumps(group.recipe)}")
        lines.append(f"members = {json.dumps(group.n_members)}")
        lines.append(f"supervision = {json.dumps(group.supervision)}")
        for name, value in group.options.items():
            lines.append(f"options.{name} = {json.dumps(value)}")
    with whole_file(path) as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
