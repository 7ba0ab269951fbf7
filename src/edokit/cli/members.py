"""`edo members add`: an existing model becomes a member."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from edokit.cli import console, options


def add(
    folder: options.Argument,
    /,
    *,
    name: str,
    model: str,
    labels: Annotated[
        dict[str, str] | None, Parameter(name="--label"), options.key_value("LABEL=CLASS")
    ] = None,
    classes: options.Names = None,
    trust: options.Names = None,
    overwrite: Annotated[bool, Parameter(help="Replace a member of this name.")] = False,
    json: options.Json = False,
) -> None:
    """Make a fitted pipeline (skops) or a text classifier a member of a folder.

    Parameters
    ----------
    folder : Path
        A new folder, or one of models that were added before.
    name : str
        The name of the member.
    model : str
        A fitted scikit-learn classifier of texts that skops.io.dump wrote, or a Hugging Face
        text-classification model: folder or hub id.
    labels : dict of str, optional
        The class of a label of the model, where the names differ (repeatable).
    classes : list of str, optional
        The classes of a new folder in order, separated by commas; else the labels of the model.
    trust : list of str, optional
        Packages other than scikit-learn whose types the file may hold.
    """
    from edokit.members import add_member

    class_of_label = add_member(
        Path(folder),
        name,
        model,
        labels=labels,
        classes=classes,
        trust=trust or (),
        overwrite=overwrite,
    )
    line = (
        f"{folder}: member {name} ({console.arrows(class_of_label)}); predict with"
        f" `edo score --members {folder} …`"
    )
    facts = {"folder": str(folder), "member": name, "labels": class_of_label}
    console.print_result(facts, line, json)
