"""What a language model is asked, and which label its answer names."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter, ascii_uppercase

import numpy as np

from edokit._errors import InputError, examples
from edokit._types import Floats
from edokit.members.recipe import Text
from edokit.scales import Scale, ScaleKind

FIELDS = ("text", "context", "labels", "label", "answers", "persona", "examples")
"""The fields of a template."""
_ENDS = "Answer with {answers} and nothing else.\n\nAnswer:"
_TEXT = "Text:\n{text}\n\n"
_CONTEXT = "Context:\n{context}\n\n"
_DEFAULTS: dict[ScaleKind, str] = {
    "nominal": "{examples}Which label fits the text best?\n\n{labels}\n\n" + _TEXT + _ENDS,
    "ordinal": "{examples}How do you rate the text on this scale? Its points, in their order:\n\n"
    "{labels}\n\n" + _TEXT + _ENDS,
    "multi-label": "{examples}Does this label fit the text? Others may fit as well.\n\n{label}\n\n"
    + _TEXT
    + _ENDS,
}
_LEAST_MASS = 0.01
"""A first token that names a label with less than this probability names none."""
_FLOOR = 1e-6
_AROUND = " \t\r\n\"'`*()[]{}<>.:,;!ĠĊ▁“”‘’"
_AFTER = r"\s*(?:$|[.,;:!)\]\n\"'*`]|[-–—(]\s*\w)"
_THOUGHTS = re.compile(r"(?s)<think>.*?</think>|^.*</think>")
_BETWEEN = re.compile(r"[,;/\n]|\band\b|\bor\b")
_NONE = ("none", "no label", "none of them", "nothing")


def default_template(scale: Scale, context: bool) -> str:
    """The template of an answer scale, for a text with or without a context."""
    template = _DEFAULTS[scale.kind]
    return template.replace(_TEXT, _CONTEXT + _TEXT) if context else template


def fields_of(template: str) -> frozenset[str]:
    """The fields of a template, once they are known ones, and the text is among them."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise InputError(
            f"the prompt template can't be read: {error}",
            "write {{ and }} for braces that are no field",
            parameters=("prompt",),
        ) from error
    fields = {name for _, name, _, _ in parts if name is not None}
    odd = [name for _, name, form, how in parts if name is not None and (form or how)]
    if unknown := sorted({*fields, *odd} - {*FIELDS}) or odd:
        raise InputError(
            f"the prompt template has the field {examples('{' + name + '}' for name in unknown)};"
            f" its fields are {', '.join('{' + name + '}' for name in FIELDS)}",
            "check the spelling, and write {{ and }} for braces that are no field",
            parameters=("prompt",),
        )
    if "text" not in fields:
        raise InputError(
            "the prompt template has no field {text}, so the model would not see the text",
            "add {text} where the text belongs; a file with a template ends in .txt or .md",
            parameters=("prompt",),
        )
    return frozenset(fields)


@dataclass(frozen=True)
class Choices:
    """What may be answered: C names and, where the prompt lists them, a key for each.

    Parameters
    ----------
    names : tuple of str
        Names of the labels.
    keys : tuple of str
        What the prompt asks for in place of a name; empty if it asks for names.
    """

    names: tuple[str, ...]
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str], *, listed: bool) -> Choices:
        """Keys are single tokens: the names where each is one character, else letters.

        More labels than letters are numbered; numbers may begin alike.
        """
        single = len({name.casefold() for name in names if len(name) == 1}) == len(names)
        letters = ascii_uppercase if len(names) <= len(ascii_uppercase) else ()
        keys = names if single else letters or [str(k + 1) for k in range(len(names))]
        return cls(tuple(names), tuple(keys[: len(names)]) if listed else ())

    @property
    def first_token_decides(self) -> bool:
        """Whether the first token of an answer may name each label."""
        return all(len(key) == 1 for key in self.keys)

    @cached_property
    def _forms(self) -> dict[str, int]:
        """Every text that names a label; none that names two."""
        each = [(key, k) for k, key in enumerate(self.keys)]
        each += [(name, k) for k, name in enumerate(self.names)]
        forms: dict[str, int] = {}
        for form, k in each:
            forms.setdefault(_bare(form) or form.casefold(), k)  # a key comes before a name
        return forms

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        longest = sorted(self._forms, key=len, reverse=True)
        return re.compile(rf"({'|'.join(map(re.escape, longest))})(?={_AFTER})")

    @property
    def shown(self) -> str:
        """What may be answered, for people and models: ``A, B or C``."""
        each = list(self.keys or self.names)
        return " or ".join(filter(None, [", ".join(each[:-1]), each[-1]]))

    def lines(self, descriptions: Mapping[str, str]) -> str:
        """The labels, a line each, with key and description."""
        return "\n".join(
            f"{key}. {described(name, descriptions)}"
            if key != name
            else f"{key}" + (f": {descriptions[name]}" if name in descriptions else "")
            for key, name in zip(self.keys or self.names, self.names, strict=True)
        )

    def named(self, answer: str) -> int | None:
        """The label that an answer names: alone, at its beginning, or as "the answer is …"."""
        text = _THOUGHTS.sub("", answer).casefold()
        if (found := self._forms.get(_bare(text))) is not None:
            return found
        every = {self._forms.get(_bare(part)) for part in _BETWEEN.split(text)} - {None}
        if len(every) > 1:
            return None
        if begun := self._begins.match(text.lstrip(_AROUND)):
            return self._forms[begun[1]]
        declared = {
            self._forms[match[1]]
            for before in re.finditer(r"\b(?:answer|label)(?:\s+is)?\s*[:=]?\s*[\"'(*`]*", text)
            if (match := self._begins.match(text, before.end()))
        }
        return declared.pop() if len(declared) == 1 else None

    def all_named(self, answer: str) -> list[int] | None:
        """The labels of a list; None if a part of it is none."""
        text = _THOUGHTS.sub("", answer).casefold()
        if _bare(text) in _NONE:
            return []
        parts = [part for part in _BETWEEN.split(text) if _bare(part)]
        found = [self.named(part) for part in parts]
        return None if None in found or not found else sorted({k for k in found if k is not None})

    def shares(self, positions: Sequence[Sequence[Sequence[float | str]]]) -> Floats | None:
        """Probabilities [C] from the alternatives to each token of an answer.

        A token that begins one label alone counts for it. Where the model's own token begins
        several, the next token decides between them. A label that no listed token begins gets
        what such a token can have at most. None if tokens that begin labels are too improbable.
        """
        mass, prefix, left, floor = np.zeros(len(self.names)), "", 1.0, 1.0
        for position in positions:
            listed = {str(token): math.exp(min(0.0, float(p))) for token, p in position}
            for token, p in listed.items():
                fitting = self._fitting(prefix + token)
                if len(fitting) == 1:
                    mass[fitting[0]] += left * p
            rest = max(0.0, 1.0 - sum(listed.values()))
            floor = min(floor, left * min(*listed.values(), rest))
            own = str(position[0][0])
            prefix, left = prefix + own, left * listed[own]
            if len(self._fitting(prefix)) < 2:
                break
        else:
            if (found := self._forms.get(_bare(prefix))) is not None:
                mass[found] += left
        if mass.sum() < _LEAST_MASS:
            return None
        missing = mass == 0
        mass[missing] = max(floor / max(int(missing.sum()), 1), _FLOOR)
        shares: Floats = mass / mass.sum()
        return shares

    def _fitting(self, begun: str) -> list[int]:
        """The labels that an answer which begins like this may name."""
        begun = begun.casefold().lstrip(_AROUND)
        if begun in (key.casefold() for key in self.keys if len(key) == 1):
            return [self._forms[begun]]
        return sorted(
            {
                k
                for form, k in self._forms.items()
                if form.startswith(begun)
                or (begun.startswith(form) and not begun[len(form)].isalnum())
            }
        )


def described(name: str, descriptions: Mapping[str, str]) -> str:
    """A label with its description."""
    return f"{name}: {descriptions[name]}" if name in descriptions else name


def read_descriptions(text: str, labels: Collection[str]) -> dict[str, str]:
    """Descriptions of labels from lines such as ``rude: hurts somebody``."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        own = [
            name
            for name in sorted(labels, key=len, reverse=True)
            if line.startswith(name) and line[len(name) :].lstrip()[:1] in (":", "=")
        ]
        if not own:
            raise InputError(
                f"label_descriptions has a line {examples([line])} for no label; the labels are"
                f" {examples(labels, 20)}",
                "write a line for each label: LABEL: what it means",
                parameters=("label_descriptions",),
            )
        found[own[0]] = line[len(own[0]) :].lstrip()[1:].strip()
    return found


def example_lines(shown: Sequence[tuple[Text, str]]) -> str:
    """An annotator's own answers, for the field {examples}; none: an empty text."""
    if not shown:
        return ""
    blocks = []
    for text, answer in shown:
        parts = [text] if isinstance(text, str) else [text[0], f"Context: {text[1]}"]
        blocks.append("Text: " + "\n".join(parts) + f"\nAnswer: {answer}")
    head = "Answer as one annotator would, who answered about other texts like this:\n\n"
    return head + "\n\n".join(blocks) + "\n\n"


def _bare(text: str) -> str:
    return text.casefold().strip(_AROUND)
