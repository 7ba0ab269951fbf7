"""What a folder of members holds, by name.

The folder of a training has the members, the predictions by split and, written last, the manifest.
The folder of a member, or of one fold of it, has the model, its predictions and, written last, its
card.
"""

from __future__ import annotations

# The number in manifests and cards; files of newer versions are refused.
FORMAT = 1

MEMBERS = "members"
PREDICTIONS = "predictions"
MANIFEST = "manifest.json"
# How familiar new texts are; earlier versions did not write it.
FAMILIARITY = "familiarity.npz"

JOB_PREDICTIONS = "predictions.npz"
CARD = "member.json"

# Suffix of the name of predictions with a row per item and annotator.
BY_ANNOTATOR = "-pairs"
# The key, in manifests, that says whether members read texts with contexts.
HAS_CONTEXTS = "pairs"
# The recipe of models from elsewhere, which `add_member` adds to a folder.
EXISTING = "edokit.members.existing:ExistingModel"
# What folders may be called: no path, no odd characters, not too long for a disk.
FOLDER_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
