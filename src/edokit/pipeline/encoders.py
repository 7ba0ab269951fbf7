"""The sentence encoder of a run: which fits the texts, whether it is here, and what it gained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from edokit._errors import EDOError, signed
from edokit.analysis.compare import compare
from edokit.analysis.compare.result import Comparison
from edokit.analysis.scores.result import Gain
from edokit.annotations.core import Annotations
from edokit.members.catalogue import ENCODERS, KnownEncoder
from edokit.members.pretrained import public_name
from edokit.members.recipes._onnx import PACKAGES
from edokit.members.recipes.encoder import check_available
from edokit.metrics import METRIC, paired_test
from edokit.pipeline.pool import EARLIER_NAMES, ENCODER_GROUPS
from edokit.predictions.core import Predictions

EXTRA_PACKAGES = (*PACKAGES, "huggingface_hub")
"""The packages of the extra `encoder`, by the names that are imported."""
_LETTER = re.compile(r"[^\W\d_]")
# Latin, with its supplements and extensions.
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Texts whose letters are counted are about this many at most.
_TEXT_SAMPLE = 2000
# Names and quotations in another script do not make a text one of that script.
_LATIN_SHARE = 0.9


@dataclass(frozen=True)
class EncoderChoice:
    """The sentence encoder for the texts of a run.

    Attributes
    ----------
    model : str
        A folder, a hub id or a short name.
    available : bool
        Whether it is on this machine, with the packages that compute it.
    advice : str
        How to get it, if it is not.
    """

    model: str
    available: bool
    advice: str = ""


def choose_encoder(model: str | None, texts: Sequence[object]) -> EncoderChoice:
    """The encoder that was asked for, else the first that is here and reads the texts' script."""
    if model is not None:
        return EncoderChoice(model, _missing(model) is None)
    suitable = _encoders_for(texts)
    for encoder in suitable:
        if _missing(encoder.repository) is None:
            return EncoderChoice(encoder.repository, True)
    return EncoderChoice(suitable[0].repository, False, _advice(suitable[0]))


MEASURED_ENCODER = "minilm"
MEASURED_GAIN = (2, 6)
"""Per cent of the headline metric that this encoder gained (benchmarks/RESULTS.md)."""


def _encoders_for(texts: Sequence[object]) -> list[KnownEncoder]:
    """The encoders that read the script of the texts."""
    if is_latin([str(text) for text in texts]):
        return list(ENCODERS)
    return [encoder for encoder in ENCODERS if not encoder.latin_only]


def is_latin(texts: Sequence[str]) -> bool:
    """Whether at least 90 % of the letters in a sample of the texts are Latin."""
    letters = 0
    latin = 0
    # Spread over the whole table, which may be sorted by language.
    step = max(1, len(texts) // _TEXT_SAMPLE)
    for text in texts[::step]:
        letters += len(_LETTER.findall(text))
        latin += len(_LATIN.findall(text))
    return latin >= _LATIN_SHARE * letters


def _missing(model: str) -> EDOError | None:
    """The error that says what a model lacks on this machine; None if nothing."""
    try:
        check_available(model)
    except EDOError as error:
        return error
    return None


def _advice(encoder: KnownEncoder) -> str:
    """One line that says that the encoder is missing, with the commands that install it."""
    commands = [f"edo models get {encoder.alias}"]
    if any(find_spec(package) is None for package in EXTRA_PACKAGES):
        commands.insert(0, 'pip install ".[encoder]"')
    gain = "often lowers the error"
    if encoder.alias == MEASURED_ENCODER:
        low, high = MEASURED_GAIN
        gain = f"lowered the error by {low} to {high} % on four English tables"
    return f"Without a sentence encoder, which {gain}. To get one: {' && '.join(commands)}"


@dataclass(frozen=True)
class EncoderGain:
    """What the members on a sentence encoder gained.

    Attributes
    ----------
    model : str
        The encoder.
    metric : str
        Which metric the gain is of.
    gain : Gain
        Of the pool over the pool without these members, its weights learned anew.
    """

    model: str
    metric: str
    gain: Gain

    @property
    def sentence(self) -> str:
        """The gain in words, with its interval."""
        metric = METRIC[self.metric].short
        low = signed(100 * self.gain.low, 1)
        high = signed(100 * self.gain.high, 1)
        if self.gain.standing == "unclear":
            return (
                f"The sentence encoder {self.model} makes no clear difference to {metric}"
                f" (95 % interval of its gain: {low} to {high} %)."
            )
        share = abs(100 * self.gain.share)
        direction = "lower"
        if self.gain.standing == "worse":
            direction = "higher"
        return (
            f"With the sentence encoder {self.model}, {metric} is {share:.1f} % {direction}"
            f" than with the other members alone (95 % interval of its gain: {low} to {high} %)."
        )


def encoder_gain(
    model: str,
    predictions: Predictions,
    labels: Annotations,
    comparison: Comparison,
    random_state: int,
) -> EncoderGain | None:
    """Compare the pool with the pool without the members on the encoder, by cross-validation.

    None if none of them, or nothing else, was trained.
    """
    groups = predictions.groups or predictions.members
    encoder_groups = set(ENCODER_GROUPS)
    encoder_groups.update(EARLIER_NAMES.get(name, name) for name in ENCODER_GROUPS)
    other_members = [
        member
        for member, group in zip(predictions.members, groups, strict=True)
        if group not in encoder_groups
    ]
    if not 0 < len(other_members) < len(predictions.members):
        return None
    without_encoder = compare(
        predictions.select(other_members),
        labels,
        methods=("edo",),
        samples=0,
        random_state=random_state,
    )
    metric = comparison.data.headline_metric
    test = paired_test(
        comparison.losses["edo"][metric],
        without_encoder.losses["edo"][metric],
        clusters=without_encoder.clusters,
    )
    return EncoderGain(
        public_name(model), metric, Gain.from_test(metric, test, without_encoder["edo"])
    )
