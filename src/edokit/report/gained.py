"""What the pool gains over the plain mean, in words, by all four measures."""

from __future__ import annotations

from edokit.metrics import PairedTest
from edokit.report.evaluation import Judged
from edokit.report.formatting import count, interval, listed, number, percent, signed

NAMES = {"f1": "F1", "ce": "CE", "md": "MD", "bs": "BS"}
_VERDICTS = {
    "better": "a gain that chance does not explain",
    "noise": "no more than chance explains",
    "worse": "a loss that chance does not explain",
}


def standing(metric: str, gain: PairedTest) -> str:
    """``better``, ``worse``, or ``noise`` where the interval of the difference holds 0."""
    low, high = (-gain.high, -gain.low) if metric == "f1" else (gain.low, gain.high)
    return "better" if high < 0 else "worse" if low > 0 else "noise"


def standings(judged: Judged) -> dict[str, list[str]]:
    """The measures by standing."""
    found: dict[str, list[str]] = {"better": [], "worse": [], "noise": []}
    for metric, name in NAMES.items():
        if metric in judged.gains:
            found[standing(metric, judged.gains[metric])].append(name)
    return found


def headline(judged: Judged) -> str:
    """How the pool compares with the plain mean, by all measures, in one sentence."""
    found = standings(judged)
    items = count(len(judged.pooled.items), judged.what.removesuffix("s"))
    where = f"On {items}"
    if judged.held_out is False:
        items = count(len(judged.pooled.items), "item")
        where = f"On the {items} it was learned from, which flatters it,"
    better, worse, noise = (listed(found[kind]) for kind in ("better", "worse", "noise"))
    if not better and not worse:
        return f"{where} the pool is within the noise of the plain mean in {noise}."
    parts = [
        f"{kind} in {names}" for kind, names in (("better", better), ("worse", worse)) if names
    ]
    parts[0] = parts[0].replace(" in ", " than the plain mean in ", 1)
    if noise:
        parts.append(f"within the noise in {noise}")
    *first, last = parts
    return f"{where} the pool is {', '.join(first) + ', and ' if first else ''}{last}."


def gained(judged: Judged) -> list[str]:
    """What the pool gains over the plain mean, with intervals."""
    if "ce" not in judged.gains:
        return []
    rows = {row["name"]: row for row in judged.methods}
    edo, uniform, level = rows["edo"], rows["uniform"], percent(judged.level)
    gain = judged.gains["ce"]
    sentences = [
        f"On {count(gain.n, judged.what.removesuffix('s'))} the cross-entropy to people’s answers"
        f" is {number(edo['ce'])} ({level}: {interval(edo['intervals']['ce'])}); the plain mean of"
        f" all members has {number(uniform['ce'])}. The difference is {signed(gain.difference)}"
        f" ({level}: {signed(gain.low)} to {signed(gain.high)}):"
        f" {_VERDICTS[standing('ce', gain)]}."
    ]
    others = {
        "md": "the distance to people’s shares (MD)",
        "bs": "the Brier score (BS)",
        "f1": "the share of hard labels met (F1)",
    }
    values = [f"{what} is {number(edo[metric])}" for metric, what in others.items()]
    gaps = [
        f"{signed(one.difference)} ({signed(one.low)} to {signed(one.high)})"
        for one in (judged.gains[metric] for metric in others)
    ]
    said = f"{listed(values)}; against the plain mean that is {listed(gaps)}."
    sentences.append(said[0].upper() + said[1:])
    if judged.correlation is not None:
        ends = interval(edo["intervals"].get("entropy_correlation"), 2)
        sentences.append(
            f"Where people disagree more, the ensemble is {_follows(judged.correlation)}: the rank"
            f" correlation of the two entropies is {number(judged.correlation, 2)}"
            f"{f' ({level}: {ends})' if ends else ''}."
        )
    return sentences


def _follows(correlation: float) -> str:
    if correlation >= 0.3:
        return "less sure, too"
    if correlation >= 0.1:
        return "a little less sure"
    return "hardly less sure"
