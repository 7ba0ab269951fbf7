"""Add a model that was trained elsewhere to a folder of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from edokit._errors import InputError, examples, local_path, option
from edokit._io.atomic import discard, whole_folder
from edokit._io.documents import write_json
from edokit.members.card import card_fields, write_card
from edokit.members.existing import ExistingModel
from edokit.members.groups import check_folder_name
from edokit.members.layout import EXISTING, HAS_CONTEXTS, MANIFEST, MEMBERS
from edokit.members.manifest import ManifestContent, new_manifest, read_manifest, scale_of
from edokit.members.resume import member_cards
from edokit.scales import check_same_scale


def add_member(
    folder: str | Path,
    name: str,
    model: str | Path,
    *,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    trust: Sequence[str] = (),
    overwrite: bool = False,
) -> dict[str, str]:
    """Add a model that you have to a folder of such models, as a member like any other.

    `score_members` and `Bundle.create` take this folder beside folders of trained members.

    Parameters
    ----------
    folder : str or Path
        A new folder, or one of models that were added before.
    name : str
        The name of the member.
    model : str or Path
        A fitted scikit-learn classifier of texts that ``skops.io.dump`` wrote, the folder of a
        Hugging Face text-classification model, or its hub id.
    labels : mapping of str to str, default=None
        The class of each label whose name differs from it; several labels may have the same class.
        Labels that are only numbered, such as ``LABEL_0``, have the classes in order.
    classes : sequence of str, default=None
        The classes of a new folder, in order. None: the labels of the model.
    trust : sequence of str, default=()
        Packages beside scikit-learn whose types the file may hold.
    overwrite : bool, default=False
        Whether to replace a member of this name.

    Returns
    -------
    dict of str to str
        The class of each label of the model.

    Raises
    ------
    InputError
        If the model can't be read, its labels do not fit the classes, or the name is taken.

    Examples
    --------
    >>> import tempfile
    >>> import skops.io
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from edokit.members import add_member
    >>> model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    >>> model = model.fit(["a fine day", "so rude"], ["yes", "no"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skops.io.dump(model, f"{folder}/polite.skops")
    ...     add_member(f"{folder}/members", "polite", f"{folder}/polite.skops")
    {'no': 'no', 'yes': 'yes'}
    """
    from edokit.runs.folder import output_folder

    folder = local_path(folder)
    check_folder_name(name)
    if not overwrite and (folder / MEMBERS / name).exists():
        raise InputError(
            f"{folder} has a member {name!r} already",
            f"choose another name, or replace it with {option('overwrite', True)}",
            code="taken-name",
        )
    with output_folder(folder, "members", overwrite=overwrite):
        _check_only_existing(folder)
        manifest = None
        if (folder / MANIFEST).exists():
            manifest = read_manifest(folder)
        if manifest is not None:
            present = manifest["data"]["classes"]
            if classes is not None and sorted(classes) != sorted(present):
                raise InputError(
                    f"the members in {folder} have the classes {examples(present, 20)}, not"
                    f" {examples(classes, 20)}",
                    f"leave {option('classes')} out",
                    code="classes-differ",
                )
            classes = present
        member = ExistingModel.read(str(model), classes, labels, trust=trust)
        if manifest is None:
            manifest = new_manifest(member.classes, member.scale)
        scale = scale_of(manifest["data"])
        check_same_scale(member.scale, f"model {name}", scale, f"members in {folder}")
        _write_member(member, folder / MEMBERS / name)
        _write_entry(manifest, name, folder)
    return member.labels


def _check_only_existing(folder: Path) -> None:
    """Raise an error if a folder has trained members."""
    if any(card["recipe"] != EXISTING for card in member_cards(folder).values()):
        raise InputError(
            f"{folder} has members that were trained there, and added models need another folder",
            "add the model to a new folder, and name both folders where members predict",
            code="wrong-folder",
        )


def _write_member(member: ExistingModel, folder: Path) -> None:
    """Write a model and its card."""
    card = {
        "recipe": EXISTING,
        "options": {"model": member.model},
        "fingerprint": "",
        "kept": True,
        "seconds": 0.0,
        **card_fields(member, member.classes, member.scale),
    }
    with whole_folder(folder) as member_folder:
        member.save(member_folder)
        write_card(card, member_folder)
        # The member of this name that it replaces goes only now that its successor is written.
        discard(folder)


def _write_entry(manifest: ManifestContent, name: str, folder: Path) -> None:
    """Add a member to the manifest of a folder, in place of one with the same name."""
    entry = {
        "name": name,
        "group": name,
        "recipe": EXISTING,
        "kept": True,
        HAS_CONTEXTS: None,  # it reads texts with and without a context
    }
    other_entries = [present for present in manifest["members"] if present["name"] != name]
    write_json({**manifest, "members": [*other_entries, entry]}, folder / MANIFEST)
