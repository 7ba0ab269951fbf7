"""What `import edokit` promises: names, and documentation in NumPy style."""

from __future__ import annotations

import inspect
import re

import pytest

import edokit
from edokit import metrics

NAMES = sorted(set(edokit.__all__) - {"__version__"})
VERBS = ("fit", "search", "compare", "evaluate", "diagnose", "train_members", "load")


def sections(text: str) -> set[str]:
    return set(re.findall(r"^\s*(\w[\w ]*)\n\s*-{3,}$", text, flags=re.MULTILINE))


def documented(text: str) -> set[str]:
    """Names in the Parameters section."""
    part = re.split(r"^\s*Parameters\n\s*-+$", text, flags=re.MULTILINE)
    if len(part) < 2:
        return set()
    body = re.split(r"^\s*\w[\w ]*\n\s*-{3,}$", part[1], flags=re.MULTILINE)[0]
    found: set[str] = set()
    for line in re.findall(r"^(?:    )?([\w*, ]+?)(?: :|$)", body, flags=re.MULTILINE):
        found |= {name.strip(" *") for name in line.split(",")}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_exported_name_is_documented(name: str) -> None:
    found = getattr(edokit, name)
    text = inspect.cleandoc(found.__doc__ or "")
    assert text.splitlines()[0].endswith("."), "a summary line"
    if inspect.isclass(found) and issubclass(found, Exception):
        return
    # Objects that functions return are documented by their attributes.
    built = name in ("Annotations", "SearchResult")
    parameters = set() if built else set(inspect.signature(found).parameters) - {"self"}
    missing = parameters - documented(text)
    assert not missing, f"without documentation: {sorted(missing)}"
    if not inspect.isclass(found):
        assert "Returns" in sections(text) or found.__annotations__["return"] == "None"
        assert "Raises" in sections(text)
    assert ">>> " in text or name in ("load", "write_report"), "an example"


@pytest.mark.parametrize("name", sorted(metrics.__all__))
def test_every_metric_is_documented(name: str) -> None:
    found = getattr(metrics, name)
    if callable(found):
        assert inspect.getdoc(found), name


def test_the_verbs_of_the_commands_can_be_imported() -> None:
    assert set(VERBS) <= set(edokit.__all__)
    for name in VERBS:
        assert callable(getattr(edokit, name))


def test_a_submodule_does_not_replace_a_verb() -> None:
    import edokit.diagnosis
    import edokit.evaluation
    import edokit.tuning

    assert all(inspect.isfunction(getattr(edokit, name)) for name in VERBS)


def test_seeds_are_called_random_state() -> None:
    for name in NAMES:
        found = getattr(edokit, name)
        assert "seed" not in inspect.signature(found).parameters, name
