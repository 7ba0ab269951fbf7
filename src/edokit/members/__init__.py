"""From texts and annotations to fitted members and their predictions."""

from edokit.members.existing import add_member, score_models
from edokit.members.groups import Group, parse_groups
from edokit.members.jobs import TrainingOptions
from edokit.members.recipe import Member, MemberData
from edokit.members.score import score_members
from edokit.members.train import train_members

__all__ = [
    "Group",
    "Member",
    "MemberData",
    "TrainingOptions",
    "add_member",
    "parse_groups",
    "score_members",
    "score_models",
    "train_members",
]
