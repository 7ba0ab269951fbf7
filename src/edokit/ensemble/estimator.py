"""EDOEnsemble: member weights and ensemble size, learned from predictions and annotations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from edokit._errors import are
from edokit._types import Floats
from edokit.annotations import Ties
from edokit.ensemble._fit import (
    as_fit_data,
    choices,
    fit_given_weights,
    fit_inputs,
    stored_parameters,
    with_labels,
)
from edokit.ensemble.answers import Answer, find_answer
from edokit.ensemble.fitted import Fitted, Pooled, Reason
from edokit.ensemble.inputs import align_inputs, label_array, pooled_members
from edokit.fitdata import FitData
from edokit.metrics import ce as cross_entropy
from edokit.predictions import Predictions, Shards
from edokit.predictions.core import ANONYMOUS
from edokit.scales import ScaleLike

if TYPE_CHECKING:
    from edokit.ensemble.trade_off import TradeOff


@cache
def _base_estimator(cls: type) -> Any:
    """The class as a subclass of scikit-learn's BaseEstimator."""
    from sklearn.base import BaseEstimator

    names = ("__doc__", "__module__", "__init__", "fit", "predict", "predict_proba", "score")
    return type(cls.__name__, (BaseEstimator,), {name: getattr(cls, name) for name in names})


def _of_base_estimator(name: str) -> Callable[..., Any]:
    """A method of BaseEstimator, which is imported when it is called."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        cls: Any = type(self)
        base = object.__new__(_base_estimator(cls))
        base.__dict__ = self.__dict__  # one object, two classes
        found = getattr(base, name)(*args, **kwargs)
        return self if found is base else found

    method.__name__ = name
    method.__doc__ = f"As ``{name}`` of scikit-learn's ``BaseEstimator``."
    return method


class _Estimator:
    """The conventions of scikit-learn, whose import takes longer than most fits.

    scikit-learn takes estimators that do not inherit from ``BaseEstimator``. What it alone calls
    imports it; parameters and ``repr``, which people use without it, do not.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            As in scikit-learn; no parameter has parameters of its own.

        Returns
        -------
        dict
            What the constructor was given, and the defaults of the rest.
        """
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        return {one.name: one.default for one in parameters if one.kind is not one.VAR_KEYWORD}

    set_params = _of_base_estimator("set_params")
    set_score_request = _of_base_estimator("set_score_request")
    set_predict_proba_request = _of_base_estimator("set_predict_proba_request")
    get_metadata_routing = _of_base_estimator("get_metadata_routing")
    __sklearn_tags__ = _of_base_estimator("__sklearn_tags__")
    _get_params_html = _of_base_estimator("_get_params_html")
    _get_fitted_attr_html = _of_base_estimator("_get_fitted_attr_html")

    def __repr__(self) -> str:
        sklearn, defaults = sys.modules.get("sklearn"), self._defaults()
        every = sklearn is not None and not sklearn.get_config()["print_changed_only"]
        shown = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if every or repr(value) != repr(defaults[name])
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "fitted_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)


class EDOEnsemble(_Estimator):
    """Learn which of K members to trust, and how many, so that their pool matches soft labels.

    A parameter that is None takes the value of the preset; ``settings_`` holds what was chosen.

    Parameters
    ----------
    preset : {"default", "paper-fixed", "paper"}, default="default"
        ``default``: exact solver, settings chosen by experiments, ``lambda_reg`` by
        cross-validation on the fit data; ``paper-fixed``: the paper's ablations; ``paper``: what
        the paper's search starts from.
    solver : {"exact", "gumbel"}, default=None
        The optimum, with a certificate, or the paper's search over weights and sizes.
    ce : {"mean", "all", "random"}, default=None
        Cross-entropy of the pool (``mean``), of every member by its weight (``all``), or of one
        member per item, sampled by weight (``random``).
    diversity : {"preserve", "suppress"}, default=None
        Reward or penalise disagreement between members; without effect if ``lambda_div`` is 0.
    pool : {"linear", "log"}, default=None
        Linear or logarithmic opinion pool. The log pool needs ``solver="exact"``.
    groups : bool, default=None
        Average the members of a group first and learn weights between groups.
    lambda_f1 : float, default=None
        Weight of 1 − soft micro-F1 (0.3 in the preset ``default``).
    lambda_ce : float, default=None
        Weight of the cross-entropy (1).
    lambda_div : float, default=None
        Weight of the mean disagreement between members (0).
    lambda_reg : float, default=None
        Weight of the squared norm of the weights: how far they are drawn to uniform ones. In
        ``default`` it is chosen by five-fold cross-validation (``settings_`` records how).
    lambda_rps : float, default=None
        Weight of the ranked probability score (0); ordinal scales and linear pools only.
    lambda_w1 : float, default=None
        Weight of the Wasserstein-1 distance (0); likewise.
    class_weights : bool, default=None
        Weigh the classes in the cross-entropy by inverse frequency (False).
    regularize : {"v", "w"}, default=None
        Norm of the effective weights, or (gumbel only) of those before sizes, as in the paper.
    min_members : int, default=None
        Smallest size that gumbel considers.
    max_members : int, default=None
        Largest size; lower-ranked members get no weight. All in ``default``, else 10.
    order : {"ce", "given"}, default="ce"
        How members are ranked: by their own cross-entropy on the fit data, or as they come.
    epochs : int, default=None
        Epochs of gumbel; in ``default`` enough to come close to the optimum, else 10.
    batch_size : int, default=None
        Items per step of gumbel (32).
    learning_rate : float, default=None
        Step size of gumbel.
    temperature, temperature_decay, min_temperature : float, default=None
        Of the Gumbel-Softmax: at the start, its rate of decay per epoch, its minimum (0.1).
    recalibrate : {"temperature"}, default=None
        Fit a temperature after pooling.
    ties : {"first", "error", "random"}, default="first"
        Hard label of items whose annotators are evenly split.
    scale : str or Scale, default=None
        Answer scale of arrays, and of predictions and annotations that declare none: ``nominal``,
        ``ordinal``, ``multi-label``, or with the classes, as in ``ordinal:low=0,mid=1,high=3``.
        None: the one that the data declare.
    label_weights : {"shared", "per-label"}, default="shared"
        Sets of labels: the same weights for every label, or weights of its own for each.
    random_state : int, default=0
        Seed of gumbel, of random ties and of the folds of the cross-validation.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weight of each member, on the simplex.
    size_ : int
        How many members carry weight (K*); with groups, how many groups.
    members_ : tuple of str
        Names of the members, in the order of the weights.
    classes_ : ndarray of shape (C,)
        Class labels in the order of the probabilities, of the type that ``fit`` was given.
    scale_ : Scale
        The answer scale.
    label_weights_ : ndarray of shape (L, K) or None
        Weights of the members for each label, where ``label_weights="per-label"``; ``weights_`` is
        then their mean, ``objective_`` the mean of the labels' own (``fitted_.label_fits``), and
        ``certificate_`` that with the largest gap.
    groups_ : tuple of str or None
        Group of each member, where groups were averaged first.
    group_weights_ : ndarray or None
        Weight of each group, in order of first appearance.
    temperature_ : float
        Applied after pooling; 1 without recalibration.
    objective_ : dict
        Terms of the loss on the fit data (``f1``, ``ce``, ``div``, ``reg``; of ordinal scales also
        ``rps``, and ``w1`` where it is weighed) and their ``total``.
    metrics_ : dict
        F1, CE, MD, BS and more of the pool on the fit data (in-sample, hence optimistic).
    member_ce_ : ndarray of shape (K,)
        Cross-entropy of each member alone on the fit data.
    certificate_ : Certificate or None
        How far the weights can be from the optimum; None for gumbel.
    trajectory_ : Trajectory or None
        Loss, terms, temperature and size distribution by epoch; None for exact.
    settings_ : dict
        Every choice that was made, the preset's filled in.
    n_items_ : int
        Items in the fit data.
    data_ : dict
        Annotators, annotations and hard labels by class in the fit data.
    constant_ : Constant or None
        The constant answer (mean soft label and majority class of the fit data) that the ensemble
        has to beat; None in ensembles that earlier versions saved.
    answers_ : dict of Answer or None
        The step that makes answers for each metric of the scale (see ``predict_proba``), fitted on
        the fit data; None in ensembles that earlier versions saved.
    fitted_ : Fitted
        All of the above in one frozen record, which is what ``save`` writes.

    Examples
    --------
    Three members' predictions [items, members, classes] and three annotators' labels:

    >>> import numpy as np
    >>> from edokit import EDOEnsemble
    >>> labels = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, 1, 0]])
    >>> yes = np.array([[0.1, 0.4, 0.9], [0.3, 0.6, 0.2], [0.9, 0.6, 0.3], [0.7, 0.4, 0.6]])
    >>> P = np.stack([1 - yes, yes], axis=2)
    >>> ensemble = EDOEnsemble().fit(P, labels)
    >>> ensemble.weights_.round(2)
    array([0.88, 0.12, 0.  ])
    >>> ensemble.predict(P)
    array([0, 0, 1, 1])
    >>> print(ensemble.explain()[0])
    0: weight 0.883 (most of the weight as the best alone; own cross-entropy 0.3722, rank 1)
    """

    def __init__(
        self,
        preset: Literal["default", "paper-fixed", "paper"] = "default",
        *,
        solver: Literal["exact", "gumbel"] | None = None,
        ce: Literal["mean", "all", "random"] | None = None,
        diversity: Literal["preserve", "suppress"] | None = None,
        pool: Literal["linear", "log"] | None = None,
        groups: bool | None = None,
        lambda_f1: float | None = None,
        lambda_ce: float | None = None,
        lambda_div: float | None = None,
        lambda_reg: float | None = None,
        lambda_rps: float | None = None,
        lambda_w1: float | None = None,
        class_weights: bool | None = None,
        regularize: Literal["v", "w"] | None = None,
        min_members: int | None = None,
        max_members: int | None = None,
        order: Literal["ce", "given"] = "ce",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        temperature: float | None = None,
        temperature_decay: float | None = None,
        min_temperature: float | None = None,
        recalibrate: Literal["temperature"] | None = None,
        ties: Ties = "first",
        scale: ScaleLike | None = None,
        label_weights: Literal["shared", "per-label"] = "shared",
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.solver = solver
        self.ce = ce
        self.diversity = diversity
        self.pool = pool
        self.groups = groups
        self.lambda_f1 = lambda_f1
        self.lambda_ce = lambda_ce
        self.lambda_div = lambda_div
        self.lambda_reg = lambda_reg
        self.lambda_rps = lambda_rps
        self.lambda_w1 = lambda_w1
        self.class_weights = class_weights
        self.regularize = regularize
        self.min_members = min_members
        self.max_members = max_members
        self.order = order
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.temperature = temperature
        self.temperature_decay = temperature_decay
        self.min_temperature = min_temperature
        self.recalibrate = recalibrate
        self.ties = ties
        self.scale = scale
        self.label_weights = label_weights
        self.random_state = random_state

    def fit(self, predictions: Any, annotations: Any = None) -> EDOEnsemble:
        """Learn weights and size.

        Parameters
        ----------
        predictions : Predictions, Shards, FitData or array of shape (N, K, C)
            Probability of each class by each member for each item. Shards are read in passes and
            are never all in memory: the exact solver finds the same, the gumbel solver learns from
            a random sample.
        annotations : Annotations or array
            Annotations are matched by item id. An array has one row per item: labels (N,), labels
            per annotator (N, A) with gaps (None or NaN), or soft labels (N, C); of sets, 0 or 1, or
            the share of annotators, for each label (N, L). Left out for FitData, which hold them.

        Returns
        -------
        EDOEnsemble
            The fitted estimator itself.

        Raises
        ------
        InputError
            If items, classes or parameters do not go together.
        """
        return self._keep(fit_inputs(predictions, annotations, self.get_params()))

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        predictions: Any,
        annotations: Any,
        *,
        size: int | None = None,
        **parameters: Any,
    ) -> EDOEnsemble:
        """An ensemble whose weights come from elsewhere, such as end-to-end training.

        Parameters
        ----------
        weights : array of shape (K,)
            Weight of each member; not negative, sum 1.
        predictions, annotations
            As in ``fit``; ``metrics_`` and ``objective_`` are computed on them.
        size : int, default=None
            Ensemble size; None counts the members with weight.
        **parameters
            Parameters of the estimator: they say which objective and pool.

        Returns
        -------
        EDOEnsemble
            A fitted estimator.
        """
        ensemble = cls(**{**parameters, "order": "given"})
        given = ensemble.get_params()
        data = as_fit_data(predictions, annotations, given)
        fitted = fit_given_weights(data, weights, size, choices(ensemble.preset, given), given)
        return ensemble._keep(with_labels(fitted, annotations))

    def _keep(self, fitted: Fitted) -> EDOEnsemble:
        """Take over what a fit found: the only place that sets fitted attributes."""
        self.fitted_ = fitted
        self.members_ = fitted.members
        self.classes_ = label_array(fitted.classes, fitted.labels)
        self.scale_ = fitted.scale
        self.label_weights_ = fitted.label_weights
        self.groups_ = fitted.groups
        self.weights_ = fitted.weights
        self.group_weights_ = fitted.group_weights
        self.size_ = fitted.size
        self.temperature_ = fitted.temperature
        self.settings_ = fitted.settings
        self.objective_ = fitted.objective
        self.metrics_ = fitted.metrics
        self.member_ce_ = fitted.member_ce
        self.certificate_ = fitted.certificate
        self.trajectory_ = fitted.trajectory
        self.n_items_ = fitted.items
        self.data_ = fitted.data
        self.constant_ = fitted.constant
        self.answers_ = fitted.answers
        return self

    def describe(self, predictions: Any, *, answer_for: str | None = None) -> Pooled:
        """Pooled probabilities with their entropy and the spread of the members.

        Parameters
        ----------
        predictions : Predictions, Shards or array of shape (N, K, C)
            Named predictions need only the members that carry weight, in any order. Of shards one
            is in memory at a time. Rows may be pairs of an item and an annotator.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Also make ``answers`` for this metric.

        Returns
        -------
        Pooled
            ``probabilities``, ``entropy``, ``spread`` and ``labels`` of the N items.

        Raises
        ------
        InputError
            If members are missing, the scale is another one than the ensemble's, or the metric does
            not fit it.
        """
        self._check_is_fitted()
        fitted = self.fitted_
        step = None if answer_for is None else self.answer_step(answer_for)
        if isinstance(predictions, Shards):
            parts = [self.describe(shard, answer_for=answer_for) for shard in predictions]
            return Pooled.concatenate(parts)
        named = pooled_members(
            predictions, fitted.members, fitted.classes, fitted.weights, fitted.scale
        )
        pooled, spread = fitted.pool_members(np.asarray(named.probabilities, dtype=np.float64))
        answers = None if step is None else step.apply(pooled, fitted.scale)
        return Pooled(
            named.items,
            named.classes,
            pooled,
            spread,
            fitted.scale,
            answer_for,
            answers,
            named.annotators,
        )

    def predict_proba(self, predictions: Any, *, answer_for: str | None = None) -> Floats:
        """Pooled probabilities (N, C), columns as in ``classes_``.

        Parameters
        ----------
        predictions : Predictions, Shards or array of shape (N, K, C)
            As for ``describe``.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Return answers for this metric instead: the pool after one step that was fitted on the
            fit data (``answers_``). ``md`` and ``w1`` (ordinal scales) reward sharper answers than
            the pool, ``f1`` the mode.

        Returns
        -------
        ndarray of shape (N, C)
            Of sets the probability of each label (N, L), which need not sum to one.

        Examples
        --------
        >>> import numpy as np
        >>> from edokit import EDOEnsemble
        >>> yes = np.array([[0.3, 0.4], [0.6, 0.4], [0.6, 0.7]])
        >>> P = np.stack([1 - yes, yes], axis=2)
        >>> ensemble = EDOEnsemble().fit(P, [[0, 0, 0], [0, 1, 1], [1, 1, 1]])
        >>> ensemble.predict_proba(P)[:, 1].round(2)
        array([0.34, 0.52, 0.64])
        >>> ensemble.predict_proba(P, answer_for="f1")[:, 1]
        array([0., 1., 1.])
        """
        pooled = self.describe(predictions, answer_for=answer_for)
        return pooled.probabilities if pooled.answers is None else pooled.answers

    def answer_step(self, metric: str) -> Answer:
        """The step that makes answers for a metric, which must fit the scale."""
        self._check_is_fitted()
        return find_answer(metric, self.answers_, self.scale_)

    def predict(self, predictions: Any) -> npt.NDArray[Any]:
        """The likeliest class of each item (N,); parameters as ``describe``.

        Labels are of the type that ``fit`` was given: integers for integers, names for Annotations.
        Of sets, an indicator matrix (N, L) as in scikit-learn: 1 for labels above one half.
        """
        p = self.predict_proba(predictions)
        return self.scale_.labels(self.scale_.hard(p), self.classes_)

    def score(self, predictions: Any, annotations: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of items whose hard label is the likeliest class (micro-F1).

        Of sets, the share of labels that are right.

        Parameters
        ----------
        predictions, annotations
            As in ``fit``.
        sample_weight : array of shape (N,), default=None
            Weight of each item.

        Returns
        -------
        float
            Between 0 and 1; the same measure as ``EDOClassifier.score``.
        """
        p, labelled = self._aligned(predictions, annotations)
        hard = labelled.hard_labels(ties=self.ties, random_state=self.random_state)
        right = self.scale_.per_item(self.scale_.hard(p) == hard, len(p))
        return float(np.average(right, weights=sample_weight))

    def soft_score(self, predictions: Any, annotations: Any) -> float:
        """Minus the cross-entropy between soft labels and pool: higher is better.

        Of sets, the mean over labels.
        """
        p, labelled = self._aligned(predictions, annotations)
        return -cross_entropy(self.scale_.rows(p), self.scale_.rows(labelled.soft_labels))

    def _aligned(self, predictions: Any, annotations: Any) -> tuple[Floats, Any]:
        """Pooled probabilities and the annotations of the same items and classes."""
        pooled = self.describe(predictions)
        one = Predictions(
            pooled.probabilities[:, None],
            pooled.items,
            ("pool",),
            pooled.classes,
            scale=pooled.scale,
        )
        named, labelled = align_inputs(one, annotations, self.scale)
        return named.probabilities[:, 0], labelled

    def needed_members(self) -> list[str]:
        """Names of the members that carry weight: all that predicting needs."""
        self._check_is_fitted()
        heavy = (name for name, w in zip(self.members_, self.weights_, strict=True) if w > 0)
        # A member and its anonymous answers are one model.
        return list(dict.fromkeys(name.removesuffix(ANONYMOUS) for name in heavy))

    def explain(self) -> list[Reason]:
        """Why each member has its weight, heaviest first.

        Returns
        -------
        list of Reason
            Objects with ``member``, ``weight``, ``kind`` and more; printed, each is a sentence.
        """
        self._check_is_fitted()
        return list(self.fitted_.explanation)

    def trade_off(self, predictions: Any, annotations: Any) -> TradeOff:
        """What cheaper ensembles lose: members dropped one by one, the weights solved again.

        Costs are those of ``Predictions.member_info``; where they are unknown, every member counts
        the same.

        Parameters
        ----------
        predictions, annotations
            What it was fitted on, as in ``fit``.

        Returns
        -------
        TradeOff
            The ensemble without each of its members, and a path of cheaper and cheaper ensembles,
            with held-out losses and standard errors.

        Examples
        --------
        >>> from edokit import EDOEnsemble, simulate
        >>> simulation = simulate("two-camps", random_state=0, items=(60, 60, 60))
        >>> people = simulation.annotations.split("dev")
        >>> truth = simulation.truth[simulation.rows("dev")]
        >>> P = {"large": 0.9 * truth + 0.05, "small": 0.7 * truth + 0.15}
        >>> predictions = Predictions.from_arrays(
        ...     P,
        ...     items=people.items,
        ...     classes=people.classes,
        ...     member_info={"large": {"cost": 3}, "small": {"cost": 1}},
        ... )
        >>> ensemble = EDOEnsemble(lambda_reg=1.0, ties="random").fit(predictions, people)
        >>> found = ensemble.trade_off(predictions, people)
        >>> [(one.dropped, one.cost) for one in found.path]
        [((), 4.0), (('small',), 3.0)]
        """
        self._check_is_fitted()
        from edokit.ensemble.trade_off import trade_off

        fitted, parameters = self.fitted_, {**self.get_params(), "scale": self.scale_}
        if isinstance(predictions, Shards):
            how = {name: parameters[name] for name in ("ties", "random_state", "scale")}
            with FitData.open(predictions, annotations, **how) as shards:
                return trade_off(fitted, shards)
        return trade_off(fitted, as_fit_data(predictions, annotations, parameters))

    def summary(self) -> dict[str, Any]:
        """Weights by member, size, terms of the loss, certificate and metrics, ready for JSON."""
        self._check_is_fitted()
        return self.fitted_.summary()

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write ``ensemble.json`` and a card; nothing in the folder executes on load.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist. An ensemble in it is replaced.
        overwrite : bool, default=False
            Also replace files of these names that EDO did not write, such as a README.md.

        Raises
        ------
        InputError
            If the folder holds something else, or another process writes to it.
        """
        self._check_is_fitted()
        from edokit._errors import local_path
        from edokit._outputs import output_folder
        from edokit.ensemble.files import write_fitted

        with output_folder(local_path(folder), "ensemble", overwrite=overwrite):
            write_fitted(self.fitted_, folder)

    @classmethod
    def load(cls, folder: str | Path) -> EDOEnsemble:
        """Read what ``save`` wrote, by this or an older version; see `edokit.load`."""
        from edokit.ensemble.files import read_fitted

        fitted = read_fitted(folder)
        return cls(**stored_parameters(fitted))._keep(fitted)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def __repr__(self) -> str:
        parameters = super().__repr__()
        return f"{parameters}: {self._headline()}" if hasattr(self, "fitted_") else parameters

    def _headline(self) -> str:
        names, weights = self.fitted_.unit_weights
        kept = [k for k in np.argsort(-weights, kind="stable") if weights[k] > 0]
        shown = ", ".join(f"{names[k]} {weights[k]:.3f}" for k in kept[:5])
        more = f" and {len(kept) - 5} more" if len(kept) > 5 else ""
        unit = "member" if self.groups_ is None else "group"
        error = self.metrics_.get("ce")
        measured = f", CE {error or 0:.4f} on the fit data ({self.fitted_.learned_from})"
        carry = are(self.size_, len(names), ("carries", "carry"), unit)
        return f"{carry} weight ({shown}{more}){'' if error is None else measured}"

    def _repr_html_(self) -> str:
        if not hasattr(self, "fitted_"):
            from sklearn.utils import estimator_html_repr

            return str(estimator_html_repr(self))
        rows = "".join(
            f"<tr><td>{escape(reason.member)}</td><td>{reason.weight:.4f}</td>"
            f"<td>{escape(reason.detail)}</td></tr>"
            for reason in self.explain()
        )
        return (
            f"<p><b>{escape(super().__repr__())}</b><br>{escape(self._headline())}</p>"
            f"<table><tr><th>member</th><th>weight</th><th>why</th></tr>{rows}</table>"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
