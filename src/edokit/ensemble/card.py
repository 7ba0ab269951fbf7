"""The card of an ensemble: README.md beside ``ensemble.json``."""

from __future__ import annotations

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from edokit._errors import counted
from edokit._io.markup import markdown_text
from edokit._package import __version__
from edokit.ensemble.fitted import GIVEN, Fitted
from edokit.metrics import main_metrics
from edokit.objective.settings import SCALE_TERMS

_SETTINGS = (
    "solver",
    "ce",
    "diversity",
    "lambda_f1",
    "lambda_ce",
    "lambda_div",
    "lambda_reg",
    "class_weights",
    "recalibrate",
)
"""Settings that are always listed. Weights of terms for ordered classes are listed unless 0."""


def card(fitted: Fitted) -> str:
    """Return the card of an ensemble: the template ``assets/card.md``, filled in."""
    environment = Environment(
        loader=PackageLoader("edokit.ensemble", "assets"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["escaped"] = markdown_text
    environment.filters["counted"] = counted
    settings = {name: fitted.settings[name] for name in _SETTINGS if name in fitted.settings}
    for name in SCALE_TERMS:
        if fitted.settings.get(name, 0) != 0:
            settings[name] = fitted.settings[name]
    metrics = {}
    for name in main_metrics(fitted.scale):
        value = fitted.metrics.get(name)
        if value is not None:
            metrics[name] = value
    order = np.argsort(-fitted.weights, kind="stable")
    return environment.get_template("card.md").render(
        fitted=fitted,
        learned=fitted.settings.get("solver") != GIVEN,
        version=__version__,
        heavy=[k for k in order if fitted.weights[k] > 0],
        metrics=metrics,
        settings=settings,
    )
