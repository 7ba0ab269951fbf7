"""From texts and annotations to fitted members and their predictions."""

from edokit.members.add import add_member
from edokit.members.groups import Group, parse_groups
from edokit.members.plan import TrainingOptions
from edokit.members.preview import TrainingPreview, preview_training
from edokit.members.recipe import Capabilities, Member, MemberData
from edokit.members.score import score_members, score_models
from edokit.members.train import train_members

__all__ = [
    "Capabilities",
    "Group",
    "Member",
    "MemberData",
    "TrainingOptions",
    "TrainingPreview",
    "add_member",
    "parse_groups",
    "preview_training",
    "score_members",
    "score_models",
    "train_members",
]
