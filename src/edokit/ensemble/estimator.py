"""EDOEnsemble: member weights and ensemble size, learned from predictions and annotations.

Also the verb `fit`, from files to files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from edokit._errors import InputError, local_path, one_of, option
from edokit._types import Floats
from edokit.annotations.core import Annotations, Ties
from edokit.config import FitConfig, from_parameters
from edokit.ensemble._fit import fit_ensemble, fit_given_weights
from edokit.ensemble.answers import Answer, find_answer
from edokit.ensemble.escalation import Against, Escalation, parse_share
from edokit.ensemble.fitted import Fitted, Reason
from edokit.ensemble.persistence import read_fitted, write_fitted
from edokit.ensemble.pooling import pool_known, pool_members
from edokit.fitdata.arrays import label_array
from edokit.fitdata.inputs import align_inputs, open_inputs, pooled_members
from edokit.fitdata.reading import (
    LabelsLike,
    PredictionsLike,
    ReadOptions,
    ShardOptions,
    as_shard_options,
)
from edokit.item_array import Order
from edokit.metrics import ce as cross_entropy
from edokit.objective.settings import (
    Exact,
    Gumbel,
    Objective,
    preset_objective,
    preset_solver,
)
from edokit.predictions.core import ANONYMOUS
from edokit.predictions.shards import Shards
from edokit.runs.folder import output_folder
from edokit.runs.record import RunRecord
from edokit.scales import ScaleLike

if TYPE_CHECKING:
    from edokit.ensemble.people import PeopleEffects
    from edokit.ensemble.pooled import Pooled
    from edokit.ensemble.views import PanelLike

_NESTED = ("objective", "solver")
"""Parameters with fields of their own."""


class EDOEnsemble(BaseEstimator):  # type: ignore[misc]
    """Learn which of K members to trust, and how many, so that their pool matches soft labels.

    Parameters
    ----------
    preset : {"default", "paper-fixed"}, default="default"
        ``default``: exact solver, settings chosen by experiments, ``reg`` by cross-validation on
        the fit data; ``paper-fixed``: the paper's ablations. The paper's search over settings is
        ``edokit.search(..., space="paper")``.
    pool : {"linear", "log"}, default=None
        Linear or logarithmic opinion pool; None: linear. The log pool needs the exact solver.
    groups : bool, default=None
        Average the members of a group first and learn weights between groups.
    objective : Objective, default=None
        Weights and modes of the loss; None for those of the preset. Nested parameters change the
        object in use: ``set_params(objective__div=0)``.
    solver : {"exact", "gumbel"}, Exact or Gumbel, default=None
        The optimum, with a certificate, or the paper's search over weights and sizes. None for that
        of the preset; a name for that solver as the preset configures it. Nested parameters as for
        ``objective``.
    recalibrate : {"temperature"}, default=None
        Fit a temperature after pooling.
    scale : str or Scale, default=None
        Answer scale of arrays, and of predictions and annotations that declare none: ``nominal``,
        ``ordinal``, ``multi-label``, or with the classes, as in ``ordinal:low=0,mid=1,high=3``.
        None: the one declared by the data.
    ties : {"first", "error", "random"}, default="first"
        Hard label of items whose annotators are evenly split.
    random_state : int, default=0
        Seed of gumbel, of random ties and of the folds of the cross-validation.
    people : bool, default=True
        Estimate how the annotators and their attributes differ from the pool, where annotators have
        names: then ``predict_proba`` answers for a person or a panel.

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
        F1, CE, MD, BS and more of the pool on the fit data (in-sample, hence optimistic). They are
        computed when they are first read; until then a fit in memory keeps 8 · (2C + 1) bytes per
        item.
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
    constant_ : Constant
        The constant answer (mean soft label and majority class of the fit data) that the ensemble
        has to beat.
    people_ : PeopleEffects or None
        How the annotators differ from the pool; None where that was not estimated.
    answers_ : dict of Answer
        The step that makes answers for each metric of the scale (see ``predict_proba``), fitted on
        the fit data.
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
        preset: Literal["default", "paper-fixed"] = "default",
        *,
        pool: Literal["linear", "log"] | None = None,
        groups: bool | None = None,
        objective: Objective | None = None,
        solver: Literal["exact", "gumbel"] | Exact | Gumbel | None = None,
        recalibrate: Literal["temperature"] | None = None,
        scale: ScaleLike | None = None,
        ties: Ties = "first",
        random_state: int = 0,
        people: bool = True,
    ) -> None:
        self.preset = preset
        self.pool = pool
        self.groups = groups
        self.objective = objective
        self.solver = solver
        self.recalibrate = recalibrate
        self.scale = scale
        self.ties = ties
        self.random_state = random_state
        self.people = people

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Also the fields of the objective and of the solver in use, as ``objective__div``.

        Returns
        -------
        dict
            Names and values.
        """
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name in _NESTED:
                options = self._options_in_use(name)
                if options is not None:
                    for part in fields(options):
                        parameters[f"{name}__{part.name}"] = getattr(options, part.name)
        return parameters

    def set_params(self, **parameters: Any) -> EDOEnsemble:
        """Set parameters by name; ``objective__div`` changes the objective in use.

        Parameters
        ----------
        **parameters
            Names and values.

        Returns
        -------
        EDOEnsemble
            The estimator itself.
        """
        nested: dict[str, dict[str, Any]] = {}
        for key in list(parameters):
            name, _, part = key.partition("__")
            if part and name in _NESTED:
                nested.setdefault(name, {})[part] = parameters.pop(key)
        super().set_params(**parameters)
        for name, changes in nested.items():
            options = self._options_in_use(name)
            if options is None:
                raise InputError(
                    f"{option(name)} is {getattr(self, name)!r}, which lacks fields",
                    f"set {name} itself first",
                    code="invalid-option",
                )
            for part in changes:
                one_of(f"a field of {name}", part, [field.name for field in fields(options)])
            setattr(self, name, replace(options, **changes))
        return self

    def _options_in_use(self, name: str) -> Objective | Exact | Gumbel | None:
        """The objective or the solver that a fit uses; None where the parameter is invalid."""
        with suppress(InputError):
            if name == "objective":
                return preset_objective(self.preset, self.objective)
            return preset_solver(self.preset, self.solver)
        return None

    def _config(self) -> FitConfig:
        """What a fit is asked for by the parameters, checked."""
        return from_parameters(
            preset=self.preset,
            pool=self.pool,
            groups=self.groups,
            objective=self.objective,
            solver=self.solver,
            recalibrate=self.recalibrate,
            scale=self.scale,
            ties=self.ties,
            random_state=self.random_state,
            people=self.people,
        )

    def fit(
        self,
        predictions: PredictionsLike,
        annotations: LabelsLike = None,
        *,
        order: Order | None = None,
    ) -> EDOEnsemble:
        """Learn weights and size.

        Parameters
        ----------
        predictions : Predictions, Shards, FitData or array of shape (N, K, C)
            Probability of each class by each member for each item. Shards are read in passes and
            are never all in memory: the exact solver finds the same, the gumbel solver learns from
            a random sample.
        annotations : Annotations or array
            Annotations are matched by item id. An array has one row per item: labels (N,), labels
            per annotator (N, A) with gaps (None or NaN), or soft labels (N, C); for multi-label
            data, 0 or 1, or the share of annotators, for each label (N, L). Left out for FitData,
            which hold them.
        order : {"annotations"}, default=None
            If only the predictions or only the annotations have item ids, they are refused, unless
            this declares that the rows of both are in the same order.

        Returns
        -------
        EDOEnsemble
            The fitted estimator itself.

        Raises
        ------
        InputError
            If items, classes or parameters do not go together.
        """
        parameters = self.get_params(deep=False)
        config = self._config()
        config.warn_of_unused_options()
        reading = ReadOptions(
            scale=config.declared_scale, ties=config.ties, seed=config.seed, order=order
        )
        with open_inputs(predictions, annotations, reading) as data:
            fitted = fit_ensemble(data, config, parameters)
        return self._keep(fitted)

    @classmethod
    def from_weights(
        cls,
        weights: npt.ArrayLike,
        predictions: PredictionsLike,
        annotations: LabelsLike,
        *,
        order: Order | None = None,
        **parameters: Any,
    ) -> EDOEnsemble:
        """An ensemble whose weights come from elsewhere, such as end-to-end training.

        Parameters
        ----------
        weights : array of shape (K,)
            Weight of each member; not negative, sum 1.
        predictions, annotations, order
            As in ``fit``; ``metrics_`` and ``objective_`` are computed on them.
        **parameters
            Parameters of the estimator: they say which objective and pool.

        Returns
        -------
        EDOEnsemble
            A fitted estimator.
        """
        ensemble = cls(**parameters)
        config = ensemble._config()
        reading = ReadOptions(
            scale=config.declared_scale, ties=config.ties, seed=config.seed, order=order
        )
        with open_inputs(predictions, annotations, reading) as data:
            fitted = fit_given_weights(data, weights, config, ensemble.get_params(deep=False))
        return ensemble._keep(fitted)

    def _keep(self, fitted: Fitted) -> EDOEnsemble:
        """Take over what a fit found: the only place that sets fitted attributes."""
        self.fitted_ = fitted
        self.n_items_ = fitted.items
        self.classes_ = label_array(fitted.classes, fitted.labels)
        self.members_ = fitted.members
        self.groups_ = fitted.groups
        self.scale_ = fitted.scale
        self.weights_ = fitted.weights
        self.group_weights_ = fitted.group_weights
        self.size_ = fitted.size
        self.temperature_ = fitted.temperature
        self.settings_ = fitted.settings
        self.objective_ = fitted.objective
        self.certificate_ = fitted.certificate
        self.trajectory_ = fitted.trajectory
        self.member_ce_ = fitted.member_ce
        self.data_ = fitted.data
        self.constant_ = fitted.constant
        self.answers_ = fitted.answers
        self.people_ = fitted.people
        return self

    @property
    def metrics_(self) -> dict[str, float | None]:
        """Metrics of the pool on the fit data, computed when they are first read."""
        return dict(self.fitted_.metrics)

    def describe(
        self,
        predictions: PredictionsLike,
        *,
        answer_for: str | None = None,
        only_knowing: bool = False,
        annotators: Mapping[str, Iterable[str]] | None = None,
        panel: PanelLike | None = None,
    ) -> Pooled:
        """Pooled probabilities with their entropy and the spread of the members.

        Parameters
        ----------
        predictions : Predictions, Shards or array of shape (N, K, C)
            Named predictions need only the members that carry weight, in any order. Of shards one
            is in memory at a time. Rows may be pairs of an item and an annotator.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Also make ``answers`` for this metric.
        only_knowing : bool, default=False
            Answer for an annotator by the members that know the annotator alone, where weights
            were learned on items: such weights do not say who knows people. A member knows an
            annotator if its answer is not the anonymous one.
        annotators : mapping of str to iterable of str, default=None
            What each annotator of each item would answer, by the effects of people (``people_``): a
            row for each of them, and one without annotator, the anonymous answer.
        panel : Panel, mapping or sequence of str, default=None
            What a panel would answer, by the effects of people: names, or levels of attributes, as
            in ``{"race": "Black", "age": ["18-24", "25-29"]}``, for all who have them.

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
        from edokit.ensemble.pooled import Pooled
        from edokit.ensemble.views import answer_for_annotators, answer_for_panel, make_panel

        check_is_fitted(self)
        fitted = self.fitted_
        step = None
        if answer_for is not None:
            step = self.answer_step(answer_for)
        if isinstance(predictions, Shards):
            parts = [
                self.describe(
                    shard,
                    answer_for=answer_for,
                    only_knowing=only_knowing,
                    annotators=annotators,
                    panel=panel,
                )
                for shard in predictions
            ]
            return Pooled.concatenate(parts)
        members = pooled_members(
            predictions, fitted.members, fitted.classes, fitted.weights, fitted.scale
        )
        P = np.asarray(members.probabilities, dtype=np.float64)
        if only_knowing and fitted.pairs is None and members.rows.people:
            pooled, spread = pool_known(fitted, P, members.is_known)
        else:
            pooled, spread = pool_members(fitted, P)
        answers = None
        if step is not None:
            answers = step.apply(pooled, fitted.scale)
        described = Pooled(
            members.rows, members.classes, pooled, spread, fitted.scale, answer_for, answers
        )
        if panel is not None:
            people = self._known_people("a panel")
            return answer_for_panel(described, people, make_panel(panel, people), step)
        if annotators is not None:
            people = self._known_people("annotators")
            return answer_for_annotators(described, people, annotators, step)
        return described

    def _known_people(self, question: str) -> PeopleEffects:
        """The effects of people; an ensemble without them is refused."""
        if self.people_ is None:
            raise InputError(
                f"the ensemble cannot answer for {question}: it was fitted without people",
                "fit it on annotations with two named annotators or more, and without --no-people",
                code="missing-people",
            )
        return self.people_

    def predict_proba(
        self,
        predictions: PredictionsLike,
        *,
        answer_for: str | None = None,
        panel: PanelLike | None = None,
    ) -> Floats:
        """Pooled probabilities (N, C), columns as in ``classes_``.

        Parameters
        ----------
        predictions : Predictions, Shards or array of shape (N, K, C)
            As for ``describe``.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Return answers for this metric instead: the pool after one step that was fitted on the
            fit data (``answers_``). ``md`` and ``w1`` (ordinal scales) reward sharper answers than
            the pool, ``f1`` the mode.
        panel : Panel, mapping or sequence of str, default=None
            Whose answer, as for ``describe``; None for nobody in particular.

        Returns
        -------
        ndarray of shape (N, C)
            For multi-label data the probability of each label (N, L), which need not sum to one.
            Of predictions with item ids, an `ItemArray`, which metrics and `edokit.evaluate` match
            with annotations by id.

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
        return self.describe(predictions, answer_for=answer_for, panel=panel).with_ids

    def answer_step(self, metric: str) -> Answer:
        """The step that makes answers for a metric, which must fit the scale."""
        check_is_fitted(self)
        return find_answer(metric, self.answers_, self.scale_)

    def predict(self, predictions: PredictionsLike) -> npt.NDArray[Any]:
        """The likeliest class of each item (N,); parameters as ``describe``.

        Labels are of the type that ``fit`` was given: integers for integers, names for Annotations.
        For multi-label data, an indicator matrix (N, L) as in scikit-learn: 1 for labels above one
        half.
        """
        p = self.predict_proba(predictions)
        return self.scale_.labels(self.scale_.hard(p), self.classes_)

    def score(
        self,
        predictions: PredictionsLike,
        annotations: LabelsLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        order: Order | None = None,
    ) -> float:
        """Accuracy: the share of items whose hard label is the likeliest class (micro-F1).

        For multi-label data, the share of labels that are right.

        Parameters
        ----------
        predictions, annotations, order
            As in ``fit``.
        sample_weight : array of shape (N,), default=None
            Weight of each item.

        Returns
        -------
        float
            Between 0 and 1; the same measure as ``EDOClassifier.score``.
        """
        p, labelled = self._aligned(predictions, annotations, order)
        hard = labelled.hard_labels(ties=self.ties, random_state=self.random_state)
        is_correct = self.scale_.per_item(self.scale_.hard(p) == hard, len(p))
        if sample_weight is None:
            weights = None
        else:
            weights = np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(is_correct, weights=weights))

    def soft_score(
        self,
        predictions: PredictionsLike,
        annotations: LabelsLike,
        *,
        order: Order | None = None,
    ) -> float:
        """Minus the cross-entropy between soft labels and pool: higher is better.

        For multi-label data, the mean over labels.
        """
        p, labelled = self._aligned(predictions, annotations, order)
        q = np.asarray(labelled.soft_labels)
        return -cross_entropy(self.scale_.rows(p), self.scale_.rows(q))

    def _aligned(
        self, predictions: PredictionsLike, annotations: LabelsLike, order: Order | None
    ) -> tuple[Floats, Annotations]:
        """Pooled probabilities and the annotations of the same items and classes."""
        pooled = self.describe(predictions)
        aligned, labelled = align_inputs(
            pooled.as_predictions(), annotations, self._config().declared_scale, order
        )
        return aligned.probabilities[:, 0], labelled

    def escalation(self, limit: float | str, against: Against = "majority") -> Escalation:
        """Which items to answer, so that few of the answers would be overruled.

        Parameters
        ----------
        limit : float or str
            The share of answers that may be overruled, such as 0.05 or ``"5%"``, with 95 %
            confidence.
        against : {"majority", "annotator"}, default="majority"
            Overruled by more than half of the annotators, or by one drawn at random.

        Returns
        -------
        Escalation
            A threshold with what it promises; printed, it is a sentence. ``decide`` applies it to
            what ``describe`` returns.

        Raises
        ------
        InputError
            If the ensemble lacks cross-fitted answers, or the limit is not a share.

        Examples
        --------
        >>> import numpy as np
        >>> from edokit import EDOEnsemble
        >>> rng = np.random.default_rng(0)
        >>> yes = rng.choice([0.02, 0.5, 0.98], 600)
        >>> votes = (rng.random((600, 5)) < yes[:, None]).astype(int)
        >>> P = np.stack([1 - yes, yes], axis=1)[:, None].repeat(2, axis=1)
        >>> ensemble = EDOEnsemble().fit(P, votes)
        >>> escalation = ensemble.escalation("5%")
        >>> round(escalation.answered, 3)
        0.685
        >>> escalation.decide(ensemble.describe(P[:3])).for_people.tolist()
        [False, True, True]
        """
        check_is_fitted(self)
        share = parse_share(limit)
        held_out = self.fitted_.held_out
        if held_out is None:
            reason = "an earlier version fitted it"
            if self.fitted_.pairs is not None:
                reason = "it was fitted on labels of single annotators"
            raise InputError(
                f"{option('escalate', limit)} needs cross-fitted answers, which the ensemble does"
                f" not hold: {reason}",
                "fit it again, on items",
                code="missing-held-out",
            )
        return Escalation.fit(held_out, self.scale_, share, against)

    def needed_members(self) -> list[str]:
        """Names of the members that carry weight: all that predicting needs."""
        check_is_fitted(self)
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
        check_is_fitted(self)
        return list(self.fitted_.explanation)

    def summary(self) -> dict[str, Any]:
        """Weights by member, size, terms of the loss, certificate and metrics, ready for JSON."""
        check_is_fitted(self)
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
        check_is_fitted(self)
        with output_folder(local_path(folder), "ensemble", overwrite=overwrite):
            write_fitted(self.fitted_, folder)

    @classmethod
    def load(cls, folder: str | Path) -> EDOEnsemble:
        """Read what ``save`` wrote, by this or an earlier version; see `edokit.load`."""
        fitted = read_fitted(folder)
        return cls(**fitted.parameters)._keep(fitted)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")


def fit(
    predictions: PredictionsLike,
    annotations: LabelsLike,
    *,
    ensemble: EDOEnsemble | None = None,
    out: str | Path | None = None,
    split: str | Sequence[str] | None = None,
    order: Order | None = None,
    overwrite: bool = False,
    streaming: ShardOptions | Mapping[str, Any] | None = None,
    read_options: Mapping[str, Any] | None = None,
    command: str = "",
) -> EDOEnsemble:
    """Learn member weights and ensemble size from predictions and annotations.

    Parameters
    ----------
    predictions : Predictions, array of shape (n_items, n_members, n_classes), Shards, str or Path
        What each member predicts for each item. A path is read as `read_predictions` does; `Shards`
        are read one by one.
    annotations : Annotations, array, str or Path
        The labels of these items, in any form that `EDOEnsemble.fit` takes. A path is read as
        `read_annotations` does.
    ensemble : EDOEnsemble, optional
        The options of the fit; ``EDOEnsemble()`` by default. It is not changed.
    out : str or Path, optional
        Folder to save the ensemble in, with a record of the files it was fitted on (``run.json``).
        An ensemble in it is replaced.
    split : str or sequence of str, optional
        Only these splits of the annotations.
    order : {"annotations"}, optional
        If only the predictions or only the annotations have item ids, they are refused, unless this
        declares that the rows of both are in the same order.
    overwrite : bool, default=False
        Also replace files in `out` that EDO did not write.
    streaming : ShardOptions or mapping, optional
        Read the predictions shard by shard, with these arguments of `FitData.open`: ``jobs``,
        ``scratch``, ….
    read_options : mapping, optional
        Further arguments of `read_annotations`, such as ``columns`` or ``classes``.
    command : str, default=""
        The command line to record in ``run.json``.

    Returns
    -------
    EDOEnsemble
        The fitted ensemble.

    Raises
    ------
    InputError
        If an option or the data are unusable, or `out` holds something else.

    Examples
    --------
    >>> import edokit
    >>> from edokit import EDOEnsemble
    >>> P = [[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.5, 0.5]], [[0.7, 0.3], [0.4, 0.6]]]
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0]]
    >>> edokit.fit(P, votes, ensemble=EDOEnsemble("paper-fixed", solver="exact")).size_
    2
    """
    if ensemble is None:
        ensemble = EDOEnsemble()
    else:
        ensemble = clone(ensemble)
    file_options = dict(read_options or {})
    if ensemble.scale is None:
        ensemble.scale = file_options.get("scale")
    parameters = ensemble.get_params(deep=False)  # kept in ensemble.json
    config = ensemble._config()  # refused before anything is read
    config.warn_of_unused_options()
    reading = ReadOptions.from_arguments(
        file_options,
        split=split,
        scale=config.declared_scale,
        ties=config.ties,
        seed=config.seed,
        shards=as_shard_options(streaming),
        order=order,
    )
    with ExitStack() as stack:
        if out is not None:
            paths = []
            for source in (predictions, annotations):
                if isinstance(source, str | Path):
                    paths.append(Path(source))
            guard = output_folder(Path(out), "ensemble", *paths, overwrite=overwrite)
            stack.enter_context(guard)
        data = stack.enter_context(open_inputs(predictions, annotations, reading))
        fitted = fit_ensemble(data, config, parameters)
        if out is not None:
            write_fitted(fitted, out)
            if data.inputs:
                RunRecord("fit", data.inputs, config.seed, command).save(Path(out))
    return ensemble._keep(fitted)
