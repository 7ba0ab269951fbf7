"""What `import edokit` promises: names, and documentation in NumPy style."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import edokit
from edokit import metrics

NAMES = sorted(set(edokit.__all__) - {"__version__"})
VERBS = (
    *("run", "fit", "search", "compare", "evaluate", "audit", "diagnose", "plan"),
    *("estimate", "gate", "train_members", "load"),
)


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


def test_every_exported_name_is_documented() -> None:
    undocumented: dict[str, list[str]] = {}
    for name in NAMES:
        exported = getattr(edokit, name)
        text = inspect.cleandoc(exported.__doc__ or "")
        gaps = [] if text.partition("\n")[0].endswith(".") else ["a summary line"]
        if not (inspect.isclass(exported) and issubclass(exported, Exception)):
            parameters = set(inspect.signature(exported).parameters) - {"self"}
            gaps += sorted(parameters - documented(text))
            gaps += [] if ">>> " in text or name in ("load", "write_report") else ["an example"]
            if not inspect.isclass(exported):
                returns = exported.__annotations__["return"] != "None"
                gaps += sorted({"Raises", *(["Returns"] if returns else [])} - sections(text))
        if gaps:
            undocumented[name] = gaps
    assert not undocumented


def test_the_reference_lists_every_exported_name() -> None:
    root = Path(__file__).parents[1]
    index = (root / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert set(edokit.__all__) - {"__version__"} - set(re.findall(r"`(\w+)`", index)) == set()


def test_every_metric_is_documented() -> None:
    exported = {name: getattr(metrics, name) for name in metrics.__all__}
    assert [name for name, value in exported.items() if callable(value) and not value.__doc__] == []


def test_the_verbs_of_the_commands_can_be_imported() -> None:
    assert set(VERBS) <= set(edokit.__all__)
    for name in VERBS:
        assert callable(getattr(edokit, name))


def test_a_submodule_does_not_replace_a_verb() -> None:
    import edokit.analysis.audit
    import edokit.analysis.diagnose
    import edokit.analysis.estimate
    import edokit.analysis.evaluate
    import edokit.analysis.gate
    import edokit.analysis.plan
    import edokit.analysis.search

    assert all(inspect.isfunction(getattr(edokit, name)) for name in VERBS)


def test_seeds_are_called_random_state() -> None:
    for name in NAMES:
        found = getattr(edokit, name)
        assert "seed" not in inspect.signature(found).parameters, name
