"""A short card beside each ensemble: what it is, what it learned, and what it is not for."""

from __future__ import annotations

from typing import Any

_CARD = """# An EDO ensemble

{size} of {count} members carry weight; their {pool} pool answers for {classes}.
{learned} {items} items{people}, by edokit {version}.

## Members
| member | weight | own cross-entropy |
|---|---|---|
{members}

## On {where}
{metrics}

Settings: {settings}.
{certificate}
## Intended use
Estimating how a group of people would answer: which items they would disagree on, and how far.
A low entropy means that the annotators' answers can be foreseen, not that the answer is right.

## Limits
- It repeats the views, and the biases, of the annotators it learned from; it does not remove them.
- It was not made to replace human oversight. In high-stakes decisions, such as moderation, keep
  people in the loop, first of all where the entropy or the spread of an answer is high. Who should
  look, and how: people who know the matter, and those concerned; `edo predict --review N` picks the
  N items where they are needed most, says why, and writes them for Label Studio.
- Do not use it for surveillance, for punishing people, or without the consent of those concerned,
  and keep to the data protection rules that apply to you.
- Weights fit the data above; on other topics, languages or groups of people, measure first
  (`edo evaluate`).
"""


def card(content: dict[str, Any]) -> str:
    """The card of an ensemble as `ensemble.json` describes it."""
    by_weight = sorted(
        zip(content["members"], content["weights"], content["member_ce"], strict=True),
        key=lambda row: -row[1],
    )
    shown = [row for row in by_weight if row[1] > 0]
    rows = [f"| {_cell(name)} | {weight:.4f} | {ce:.4f} |" for name, weight, ce in shown]
    if len(shown) < len(by_weight):
        rows.append(f"| {len(by_weight) - len(shown)} others | 0 | |")
    metrics = content["metrics"]
    certificate = content["certificate"]
    settings = content["settings"]
    learned = settings["solver"] != "given"
    named = [
        *("solver", "ce", "diversity", "lambda_f1", "lambda_ce", "lambda_div", "lambda_reg"),
        *("class_weights", "recalibrate"),
    ]
    return _CARD.format(
        size=content["size"],
        count=len(content["members"]) if content["groups"] is None else "the grouped",
        pool=content["pool"],
        classes=", ".join(_cell(name) for name in content["classes"]),
        learned="Learned from" if learned else "Its weights were given; judged on",
        where="the fit data (not held out)" if learned else "these items",
        items=content["items"],
        people=_people(content.get("data") or {}),
        version=content["versions"]["edokit"],
        members="\n".join(rows),
        metrics=", ".join(
            f"{label} {metrics[key]:.4f}"
            for key, label in (("f1", "F1"), ("ce", "CE"), ("md", "MD"), ("bs", "BS"))
            if metrics.get(key) is not None
        ),
        settings=", ".join(f"{name} {settings[name]}" for name in named),
        certificate=(
            f"\nCertificate: {certificate['reason']} ({certificate['gap']:.1e}).\n"
            if certificate
            else ""
        ),
    )


def _people(data: dict[str, Any]) -> str:
    """Who answered, as far as it is known."""
    if not data:
        return ""
    classes = ", ".join(f"{count} × {_cell(name)}" for name, count in data["hard_labels"].items())
    return (
        f" with {data['annotations']} answers of {data['annotators']} annotators"
        f" (hard labels: {classes})"
    )


def _cell(name: str) -> str:
    """A name inside a table."""
    return name.replace("|", "\\|").replace("\n", " ")
