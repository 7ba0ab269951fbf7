"""From texts and annotations to fitted members and their predictions."""

from edokit.members.course import Course
from edokit.members.hub import score_models
from edokit.members.judges import read_judges
from edokit.members.plan import Plan, Unit
from edokit.members.pool import Group, parse_pool
from edokit.members.recipe import Lesson, Member
from edokit.members.registry import find_recipe, recipe_names
from edokit.members.score import load_member, score_members
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

__all__ = [
    "Course",
    "Draw",
    "Group",
    "Lesson",
    "Member",
    "Plan",
    "Supervision",
    "Texts",
    "Trained",
    "Unit",
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
