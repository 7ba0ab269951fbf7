"""From texts and annotations to fitted members and their predictions."""

from edokit.members.existing import add_member, score_models
from edokit.members.groups import Group, parse_groups
from edokit.members.jobs import TrainingJob, TrainingPlan
from edokit.members.recipe import Member, MemberData, find_recipe, recipe_names
from edokit.members.score import LoadedMembers, load_member, score_members
from edokit.members.supervision import (
    Draw,
    Supervision,
    majority,
    most_active,
    per_annotator,
    random_select,
    soft,
)
from edokit.members.texts import Texts, read_annotators, read_text_parts, read_texts
from edokit.members.train import (
    Trained,
    TrainingOptions,
    make_plan,
    preview_training,
    train_members,
    train_plan,
)
from edokit.members.training_data import TrainingData

__all__ = [
    "Draw",
    "Group",
    "LoadedMembers",
    "Member",
    "MemberData",
    "Supervision",
    "Texts",
    "Trained",
    "TrainingData",
    "TrainingJob",
    "TrainingOptions",
    "TrainingPlan",
    "add_member",
    "find_recipe",
    "load_member",
    "majority",
    "make_plan",
    "most_active",
    "parse_groups",
    "per_annotator",
    "preview_training",
    "random_select",
    "read_annotators",
    "read_text_parts",
    "read_texts",
    "recipe_names",
    "score_members",
    "score_models",
    "soft",
    "train_members",
    "train_plan",
]
