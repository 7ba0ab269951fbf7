"""`EDOEnsemble`: member weights and ensemble size, learned from predictions and annotations.

`fit` does the same from files to files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
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
from edokit.ensemble.pooling import pool_knowing_members, pool_members
from edokit.fitdata.arrays import label_array
from edokit.fitdata.inputs import align_inputs, members_with_weight, open_inputs
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
"""Parameters whose fields are nested parameters, such as ``solver__epochs``."""


class EDOEnsemble(BaseEstimator):  # type: ignore[misc]
    """Learn which of K members to trust, and how many, so that their pool matches soft labels.

    Parameters
    ----------
    preset : {"default", "paper-fixed"}, default="default"
        ``default``: the exact solver, with settings that experiments chose and ``reg`` by
        cross-validation on the fit data. ``paper-fixed``: the settings of the paper's ablations.
        The paper's search over settings is ``edokit.search(..., space="paper")``.
    pool : {"linear", "log"}, default=None
        Linear or logarithmic opinion pool; None is linear. The log pool needs the exact solver.
    groups : bool, default=None
        Whether to average the members of each group first and learn weights for groups; None is
        False.
    objective : Objective, default=None
        Weights and modes of the loss; None for those of the preset. Nested parameters, as in
        ``set_params(objective__div=0)``, change fields of the objective.
    solver : {"exact", "gumbel"}, Exact or Gumbel, default=None
        ``exact`` finds the optimum, with a certificate; ``gumbel`` is the paper's search over
        weights and sizes. A name selects the solver with the options of the preset, and None the
        preset's solver. Nested parameters change fields of the solver.
    recalibrate : {"temperature"}, default=None
        What to fit after pooling; None for nothing.
    scale : str or Scale, default=None
        Answer scale of arrays, and of predictions and annotations that declare none: ``nominal``,
        ``ordinal``, ``multi-label``, or with the classes, as in ``ordinal:low=0,mid=1,high=3``.
        None for the scale that the data declare.
    ties : {"first", "error", "random"}, default="first"
        Hard label of items whose annotators are evenly split.
    random_state : int, default=0
        Seed of gumbel, of random ties and of the folds of the cross-validation.
    people : bool, default=True
        Whether to estimate how named annotators and their attributes differ from the pool, so that
        ``predict_proba`` can answer for a person or a panel.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Weight of each member, on the simplex.
    size_ : int
        Number of members with weight (K*); with groups, number of groups.
    members_ : tuple of str
        Names of the members, in the order of the weights.
    classes_ : ndarray of shape (C,)
        Class labels in the order of the probabilities, of the type that ``fit`` was given.
    scale_ : Scale
        The answer scale.
    groups_ : tuple of str or None
        Group of each member, if groups were averaged first.
    group_weights_ : ndarray or None
        Weight of each group, in order of first appearance.
    temperature_ : float
        Applied after pooling; 1 without recalibration.
    objective_ : dict
        Terms of the loss on the fit data (``f1``, ``ce``, ``div``, ``reg``; for ordinal scales also
        ``rps``, and ``w1`` if it has a weight) and ``total``, their weighted sum.
    metrics_ : dict
        F1, CE, MD, BS and more of the pool on the fit data (in-sample, hence optimistic). They are
        computed when they are first read; until then a fit in memory keeps the pool and the labels,
        about 16 · C bytes per item.
    member_ce_ : ndarray of shape (K,)
        Cross-entropy of each member alone on the fit data.
    certificate_ : Certificate or None
        How far the weights can be from the optimum; None for gumbel.
    trajectory_ : Trajectory or None
        Loss, terms, temperature and size distribution by epoch; None for exact.
    settings_ : dict
        All settings of the fit by name, with the values that the preset or the fit chose.
    n_items_ : int
        Items in the fit data.
    data_ : dict
        Annotators, annotations and hard labels by class in the fit data.
    constant_ : Constant
        The constant answer, the least that the ensemble must beat: mean soft label and majority
        class of the fit data.
    people_ : PeopleEffects or None
        How the annotators differ from the pool; None if that was not estimated.
    answers_ : dict of Answer
        For each metric of the scale, the step after pooling that makes answers for it (see
        ``predict_proba``), fitted on the fit data.
    fitted_ : Fitted
        All of the above in one frozen record, which ``save`` writes.

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
            Also return the fields of the objective and of the solver, as ``objective__div``.

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
        """Set parameters by name; ``objective__div`` changes a field of the objective.

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
                    f"{option(name)} is {getattr(self, name)!r}, which has no fields",
                    f"set {name} itself first",
                    code="invalid-option",
                )
            for part in changes:
                one_of(f"a field of {name}", part, [field.name for field in fields(options)])
            setattr(self, name, replace(options, **changes))
        return self

    def _options_in_use(self, name: str) -> Objective | Exact | Gumbel | None:
        """The objective or the solver of a fit; None if the parameter is invalid."""
        try:
            if name == "objective":
                return preset_objective(self.preset, self.objective)
            return preset_solver(self.preset, self.solver)
        except InputError:
            return None

    def _config(self) -> FitConfig:
        """The configuration that the parameters describe, checked."""
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
            are never all in memory: the exact solver finds the same weights, and the gumbel solver
            learns from a random sample.
        annotations : Annotations or array
            Annotations are matched by item id. An array has one row per item: labels (N,), labels
            per annotator (N, A) with gaps (None or NaN), or soft labels (N, C); for multi-label
            data, 0 or 1, or the share of annotators, for each label (N, L). FitData contain them.
        order : {"annotations"}, default=None
            Declares that the rows of predictions and annotations are in the same order. Without it,
            inputs of which only one has item ids are refused.

        Returns
        -------
        EDOEnsemble
            The fitted estimator itself.

        Raises
        ------
        InputError
            If items, classes or parameters contradict each other.
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
        """Make an ensemble with given weights, such as those of end-to-end training.

        Parameters
        ----------
        weights : array of shape (K,)
            Weight of each member; not negative, sum 1.
        predictions, annotations, order
            As in ``fit``; ``metrics_`` and ``objective_`` are computed on them.
        **parameters
            Parameters of the estimator, such as objective and pool.

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
        """Set the fitted attributes; no other method sets them."""
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
            Named predictions need only the members with weight, in any order. Shards are in memory
            one at a time. Rows may be pairs of an item and an annotator.
        answer_for : {"ce", "md", "w1", "f1"}, default=None
            Also make ``answers`` for this metric.
        only_knowing : bool, default=False
            Whether only members that know an annotator answer for the annotator, in an ensemble
            whose weights were learned on items: such weights ignore which members know annotators.
            A member knows an annotator if its answer is not the anonymous one.
        annotators : mapping of str to iterable of str, default=None
            The annotators of each item, for whom ``people_`` predicts answers. There is then a row
            for each of them, and one without annotator for the anonymous answer.
        panel : Panel, mapping or sequence of str, default=None
            The panel for which ``people_`` predicts answers: names of annotators, or levels of
            attributes, as in ``{"race": "Black", "age": ["18-24", "25-29"]}``, for all annotators
            with these levels.

        Returns
        -------
        Pooled
            ``probabilities``, ``entropy``, ``spread`` and ``labels`` of the N items.

        Raises
        ------
        InputError
            If members are missing, the scale differs from the ensemble's, or the metric is not
            defined on it.
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
        members = members_with_weight(
            predictions, fitted.members, fitted.classes, fitted.weights, fitted.scale
        )
        P = np.asarray(members.probabilities, dtype=np.float64)
        if only_knowing and not fitted.is_fitted_on_pairs and members.rows.people:
            pooled, spread = pool_knowing_members(fitted, P, members.is_known)
        else:
            pooled, spread = pool_members(fitted, P)
        answers = None
        if step is not None:
            answers = step.apply(pooled, fitted.scale)
        described = Pooled(
            rows=members.rows,
            classes=members.classes,
            probabilities=pooled,
            spread=spread,
            scale=fitted.scale,
            answer_for=answer_for,
            answers=answers,
        )
        if panel is not None:
            people = self._known_people("a panel")
            return answer_for_panel(described, people, make_panel(panel, people), step)
        if annotators is not None:
            people = self._known_people("annotators")
            return answer_for_annotators(described, people, annotators, step)
        return described

    def _known_people(self, respondents: str) -> PeopleEffects:
        """The effects of people; refuse ``respondents``, such as "a panel", without them."""
        if self.people_ is None:
            raise InputError(
                f"the ensemble cannot answer for {respondents}: it was fitted without people",
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
            Return answers for this metric: the pool after one step that was fitted on the fit data
            (``answers_``). ``md`` and ``w1`` (ordinal scales) reward answers that are sharper than
            the pool, ``f1`` rewards the mode.
        panel : Panel, mapping or sequence of str, default=None
            The panel that answers, as for ``describe``; None for the anonymous answer.

        Returns
        -------
        ndarray of shape (N, C)
            For multi-label data the probability of each label (N, L), which need not sum to one.
            For predictions with item ids it is an `ItemArray`, which metrics and `edokit.evaluate`
            match with annotations by id.

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
        """The step after pooling that makes answers for a metric of the scale."""
        check_is_fitted(self)
        return find_answer(metric, self.answers_, self.scale_)

    def predict(self, predictions: PredictionsLike) -> npt.NDArray[Any]:
        """The likeliest class of each item (N,); ``predictions`` as for ``describe``.

        Labels have the type of those that ``fit`` was given: integers for integers, names for
        Annotations. For multi-label data, the result is an indicator matrix (N, L) as in
        scikit-learn: 1 for labels above one half.
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

        For multi-label data, it is the share of labels that are right.

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
        accuracies = self.scale_.per_item(self.scale_.hard(p) == hard, len(p))
        weights = None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(accuracies, weights=weights))

    def soft_score(
        self,
        predictions: PredictionsLike,
        annotations: LabelsLike,
        *,
        order: Order | None = None,
    ) -> float:
        """Minus the cross-entropy between soft labels and pool: higher is better.

        For multi-label data, it is the mean over labels.
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
        """Choose which items to answer, so that few of the answers would be overruled.

        Parameters
        ----------
        limit : float or str
            The largest share of answers that may be overruled, such as 0.05 or ``"5%"``; the
            promise holds with 95 % confidence.
        against : {"majority", "annotator"}, default="majority"
            Who overrules: more than half of the annotators, or one drawn at random.

        Returns
        -------
        Escalation
            The threshold and its promise; printed, it is a sentence. ``decide`` applies it to the
            result of ``describe``.

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
            if self.fitted_.is_fitted_on_pairs:
                reason = "it was fitted on labels of single annotators"
            raise InputError(
                f"{option('escalate', limit)} needs cross-fitted answers, which the ensemble does"
                f" not hold: {reason}",
                "fit it again, on items",
                code="missing-held-out",
            )
        return Escalation.fit(held_out, self.scale_, share, against)

    def needed_members(self) -> list[str]:
        """Names of the members with weight, which are all that predictions need."""
        check_is_fitted(self)
        names = []
        for name, weight in zip(self.members_, self.weights_, strict=True):
            model = name.removesuffix(ANONYMOUS)  # a member and its anonymous answers are one model
            if weight > 0 and model not in names:
                names.append(model)
        return names

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
            Whether to replace files of these names that EDO did not write, such as a README.md.

        Raises
        ------
        InputError
            If the folder contains something else, or another process writes to it.
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
        Declares that the rows of predictions and annotations are in the same order. Without it,
        inputs of which only one has item ids are refused.
    overwrite : bool, default=False
        Whether to replace files in `out` that EDO did not write.
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
        If an option or the data are unusable, or `out` contains something else.

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
