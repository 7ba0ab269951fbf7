"""From texts and annotations to fitted members and their predictions."""

from edokit.members.existing import add_member, score_models
from edokit.members.groups import Group, parse_groups
from edokit.members.jobs import TrainingOptions
from edokit.members.recipe import Member, MemberData
from edokit.members.score import LoadedMembers, score_members
from edokit.members.texts import Texts, read_annotators, read_texts
from edokit.members.train import Trained, preview_training, train_members

__all__ = [
    "Group",
    "LoadedMembers",
    "Member",
    "MemberData",
    "Texts",
    "Trained",
    "TrainingOptions",
    "add_member",
    "parse_groups",
    "preview_training",
    "read_annotators",
    "read_texts",
    "score_members",
    "score_models",
    "train_members",
]
