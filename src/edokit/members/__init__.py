"""From texts and annotations to fitted members and their predictions."""

from edokit.members.groups import Group, parse_pool
from edokit.members.hub import score_models
from edokit.members.jobs import Plan, TrainingJob
from edokit.members.recipe import Member, MemberData, find_recipe, recipe_names
from edokit.members.score import load_member, read_judges, score_members
from edokit.members.supervision import (
    Draw,
    Supervision,
    majority,
    most_active,
    per_annotator,
    random_select,
    soft,
)
from edokit.members.texts import Texts, read_texts
from edokit.members.train import Trained, make_plan, train_members, train_plan
from edokit.members.training_data import TrainingData

__all__ = [
    "TrainingData",
    "Draw",
    "Group",
    "MemberData",
    "Member",
    "Plan",
    "Supervision",
    "Texts",
    "Trained",
    "TrainingJob",
    "find_recipe",
    "load_member",
    "majority",
    "make_plan",
    "most_active",
    "parse_pool",
    "per_annotator",
    "random_select",
    "read_judges",
    "read_texts",
    "recipe_names",
    "score_members",
    "score_models",
    "soft",
    "train_members",
    "train_plan",
]
