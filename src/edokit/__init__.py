"""EDO: learning from people who disagree.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edokit._package import __version__, lazy_names

if TYPE_CHECKING:
    from edokit._errors import EDOError, EDOWarning, InputError, MissingExtraError
    from edokit._progress import ProgressBar
    from edokit.analysis.agreement import agreement
    from edokit.analysis.audit import audit
    from edokit.analysis.card import disagreement_card
    from edokit.analysis.compare import compare
    from edokit.analysis.diagnose import diagnose
    from edokit.analysis.estimate import estimate
    from edokit.analysis.evaluate import evaluate
    from edokit.analysis.gate import gate
    from edokit.analysis.labels import check_labels
    from edokit.analysis.plan import plan
    from edokit.analysis.search import search
    from edokit.analysis.search.options import SearchOptions
    from edokit.analysis.search.result import SearchResult
    from edokit.analysis.search.space import SearchSpace
    from edokit.annotations.core import Annotations
    from edokit.bundle import Bundle, load
    from edokit.datasets.read import read_annotations, write_annotations
    from edokit.datasets.simulate.simulation import simulate
    from edokit.ensemble.classifier import EDOClassifier
    from edokit.ensemble.estimator import EDOEnsemble, fit
    from edokit.item_array import ItemArray
    from edokit.members import add_member, score_members, train_members
    from edokit.objective.settings import Exact, Gumbel, Objective
    from edokit.panels import Panel
    from edokit.pipeline import run
    from edokit.pipeline.options import RunOptions
    from edokit.pipeline.result import Run
    from edokit.predictions.core import Predictions
    from edokit.predictions.files import write_predictions
    from edokit.predictions.shards import read_predictions
    from edokit.report import write_report
    from edokit.scales import Scale

__all__ = [
    "Annotations",
    "Bundle",
    "EDOClassifier",
    "EDOEnsemble",
    "EDOError",
    "EDOWarning",
    "Exact",
    "Gumbel",
    "InputError",
    "ItemArray",
    "MissingExtraError",
    "Objective",
    "Panel",
    "Predictions",
    "ProgressBar",
    "Run",
    "RunOptions",
    "Scale",
    "SearchOptions",
    "SearchResult",
    "SearchSpace",
    "__version__",
    "add_member",
    "agreement",
    "audit",
    "check_labels",
    "compare",
    "diagnose",
    "disagreement_card",
    "estimate",
    "evaluate",
    "fit",
    "gate",
    "load",
    "plan",
    "read_annotations",
    "read_predictions",
    "run",
    "score_members",
    "search",
    "simulate",
    "train_members",
    "write_annotations",
    "write_predictions",
    "write_report",
]
__getattr__ = lazy_names(
    __name__,
    {
        "_errors": ("EDOError", "EDOWarning", "InputError", "MissingExtraError"),
        "_progress": ("ProgressBar",),
        "annotations.core": ("Annotations",),
        "analysis.agreement": ("agreement",),
        "analysis.audit": ("audit",),
        "analysis.card": ("disagreement_card",),
        "analysis.compare": ("compare",),
        "bundle": ("Bundle", "load"),
        "datasets.read": ("read_annotations", "write_annotations"),
        "datasets.simulate.simulation": ("simulate",),
        "analysis.diagnose": ("diagnose",),
        "ensemble.classifier": ("EDOClassifier",),
        "ensemble.estimator": ("EDOEnsemble", "fit"),
        "analysis.gate": ("gate",),
        "analysis.labels": ("check_labels",),
        "analysis.estimate": ("estimate",),
        "analysis.evaluate": ("evaluate",),
        "item_array": ("ItemArray",),
        "members": ("add_member", "score_members", "train_members"),
        "objective.settings": ("Exact", "Gumbel", "Objective"),
        "panels": ("Panel",),
        "analysis.plan": ("plan",),
        "predictions.core": ("Predictions",),
        "predictions.files": ("write_predictions",),
        "predictions.shards": ("read_predictions",),
        "report": ("write_report",),
        "pipeline": ("run",),
        "pipeline.options": ("RunOptions",),
        "pipeline.result": ("Run",),
        "scales": ("Scale",),
        "analysis.search": ("search",),
        "analysis.search.options": ("SearchOptions",),
        "analysis.search.result": ("SearchResult",),
        "analysis.search.space": ("SearchSpace",),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
