"""The base class of every recipe, what a recipe declares about itself, and what it trains on.

A recipe is a scikit-learn-style estimator in one file of ``recipes``, which has its name: a
subclass of `Member`, made with ``Recipe(n_classes, **options)``, with five methods: ``fit``,
``predict_proba``, ``get_params`` (inherited), ``save`` and ``load``. Every option is a keyword
argument with a default of a plain type (str, int, float, bool or None). Seeds, targets, splits,
folds, resuming, progress, failures and the files of predictions are the runner's.

The runner knows a recipe by its `Capabilities` alone. The names of options mean nothing to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from edokit._errors import InputError, warn
from edokit._progress import Progress
from edokit._types import Codes, Floats
from edokit.members.contexts import Context, Text, split_context
from edokit.scales import NOMINAL, Scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations

OptionValues: TypeAlias = Mapping[str, Any]
"""Options of a recipe by name, as a TOML file may hold them: plain values, lists and tables."""
PlainValues: TypeAlias = Mapping[str, object]
"""Values that a JSON document may hold, by name."""

# For each text the annotators whose labels are to be predicted.
Annotators = Sequence[Iterable[str]] | None


class RetiredOption(NamedTuple):
    """An option that a recipe had in earlier versions.

    Parameters
    ----------
    name : str
        The option.
    hint : str
        What to do instead of giving it.
    """

    name: str
    hint: str


@dataclass(frozen=True)
class Capabilities:
    """What a recipe declares about itself; the defaults describe a classifier on the CPU.

    Parameters
    ----------
    epochs : bool, default=False
        It trains in epochs: it asks for the targets of each of them, and stops early on dev texts,
        on which it is not trained.
    device : bool, default=False
        It computes with torch, on the ``device`` that its constructor and ``load`` take. If it has
        ``epochs``, it trains on GPUs.
    endpoint : bool, default=False
        It sends texts to a server: its members run one by one, and may have a budget. Its
        ``address`` says where.
    multi_label : bool, default=False
        It can give each label a probability of its own, as multi-label data needs.
    trained : bool, default=True
        It learns from the items to train on. If not, all folds are the same fit, and all members
        of a group are the same.
    people : str, default=None
        The option with which it learns individual annotators. A member with this option learns
        from the items, even if the recipe is not ``trained``.
    pretrained : str, default=None
        The option that names a pretrained model: a hub id or a folder.
    separate_model : bool, default=False
        Its ``save`` leaves this pretrained model out. A bundle then has a copy of it, and ``load``
        takes ``models``: the folders of these copies by name, or None outside of a bundle.
    trust : bool, default=False
        What it saves may name packages or servers that users must trust: ``load`` takes their names
        as ``trust``.
    operational : tuple of str, default=()
        Options that change no prediction, such as a time limit: members are not trained again for
        other values.
    titled : tuple of str, default=()
        Options with long values. If a TOML table names the values of such an option, the name goes
        into the option ``<option>_name``.
    retired : tuple of RetiredOption, default=()
        Options that it had in earlier versions.

    Examples
    --------
    >>> from edokit.members import Capabilities
    >>> Capabilities(epochs=True, device=True).endpoint
    False
    """

    epochs: bool = False
    device: bool = False
    endpoint: bool = False
    multi_label: bool = False
    trained: bool = True
    people: str | None = None
    pretrained: str | None = None
    separate_model: bool = False
    trust: bool = False
    operational: tuple[str, ...] = ()
    titled: tuple[str, ...] = ()
    retired: tuple[RetiredOption, ...] = ()

    @property
    def trains_on_device(self) -> bool:
        """Whether a member is fitted on a GPU where there is one."""
        return self.epochs and self.device

    def can_learn(self, scale: Scale) -> bool:
        """Whether members can learn answers on this scale."""
        return self.multi_label or not scale.is_multi_label

    def load_parameters(self) -> tuple[str, ...]:
        """The parameters that ``load`` takes beside the folder."""
        declared = {
            "device": self.device,
            "trust": self.trust,
            "models": self.separate_model,
        }
        return tuple(name for name, is_taken in declared.items() if is_taken)

    def named_options(self) -> tuple[str, ...]:
        """The options that these capabilities refer to by name."""
        titles = tuple(f"{name}_name" for name in self.titled)
        single = tuple(name for name in (self.people, self.pretrained) if name is not None)
        return (*single, *self.operational, *self.titled, *titles)


@dataclass(frozen=True)
class MemberData:
    """What one member trains on.

    Parameters
    ----------
    texts : sequence of str
        N texts.
    targets : callable
        Targets [N, C] of an epoch, counted from 0. For multi-label data, the share of annotators
        who chose each label, or the choice of one of them.
    context : sequence of str, default=None
        The context of each text, such as the post that it replies to.
    dev_texts, dev_context : sequence of str, default=() and None
        Texts to stop early on.
    dev_soft_labels : ndarray of shape (N_dev, C), default=None
        Soft labels of the dev texts.
    dev_hard_labels : ndarray of shape (N_dev,), default=None
        Hard labels of the dev texts; (N_dev, C) for multi-label data.
    annotations, dev_annotations : Annotations, default=None
        The annotations of the texts, for recipes that learn individual annotators.
    scale : Scale, default=nominal
        What the classes are to one another.
    classes : sequence of str, default=()
        Names of the C classes.
    corpus : tuple of str or of (str, str), default=()
        All texts of the training, with their contexts: a recipe may compute their features once
        for all members.
    """

    texts: Sequence[str]
    targets: Callable[[int], Floats]
    context: Context = None
    dev_texts: Sequence[str] = ()
    dev_context: Context = None
    dev_soft_labels: Floats | None = None
    dev_hard_labels: Codes | None = None
    annotations: Annotations | None = None
    dev_annotations: Annotations | None = None
    scale: Scale = NOMINAL
    classes: Sequence[str] = ()
    corpus: tuple[Text, ...] = ()


class Member:
    """One classifier of the ensemble: the base class of every recipe.

    A recipe declares its ``capabilities``, which are none by default.

    Examples
    --------
    >>> import numpy as np
    >>> from edokit.members import Capabilities, Member, MemberData
    >>> class Prior(Member):
    ...     capabilities = Capabilities(multi_label=True)
    ...     def __init__(self, n_classes):
    ...         self.n_classes = n_classes
    ...     def fit(self, data, *, random_state=0, progress=None):
    ...         self.share = data.targets(0).mean(axis=0)
    ...         return self
    ...     def predict_proba(self, texts, context=None, annotators=None):
    ...         return np.tile(self.share, (len(texts), 1))
    >>> data = MemberData(["a", "b"], lambda epoch: np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> Prior(2).fit(data).predict_proba(["c"])
    array([[0.5, 0.5]])
    """

    capabilities: ClassVar[Capabilities] = Capabilities()
    n_classes: int

    def fit(
        self, data: MemberData, *, random_state: int = 0, progress: Progress | None = None
    ) -> Member:
        """Fit; the same ``random_state`` gives the same member on the same machine.

        ``progress`` may be called with the number of epochs (or requests) done, their total, and a
        description of the current one.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks fit")

    def predict_proba(
        self, texts: Sequence[str], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; each label's own if it was fitted to multi-label data.

        ``context`` is passed if it was trained with contexts. ``annotators`` is passed if it knows
        annotators: for each text those whose labels are to be predicted.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks predict_proba")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that it was made with."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, nothing that executes on load.

        The folder exists and is empty; the name ``member.json`` is taken.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks save")

    @classmethod
    def load(cls, folder: Path) -> Member:
        """Read what ``save`` wrote.

        With the capabilities ``device``, ``trust`` or ``separate_model`` it has further keyword
        parameters, see `Capabilities`.
        """
        raise NotImplementedError(f"{cls.__name__} lacks load")

    @property
    def known_annotators(self) -> tuple[str, ...]:
        """Annotators that it has learned; none by default."""
        return ()

    @property
    def address(self) -> str:
        """Where it sends texts, if it asks an endpoint; empty by default."""
        return ""

    @property
    def onnx_file(self) -> Path | None:
        """The ONNX file of its pretrained model, if it computes with one; none by default."""
        return None

    @property
    def history(self) -> Sequence[PlainValues]:
        """Plain values about each epoch of its training, for ``member.json``."""
        return ()

    @property
    def details(self) -> PlainValues:
        """Plain values about a fitted member, for ``member.json`` and ``Predictions.member_info``.

        ``cost`` is of one item; ``requests`` and ``failures`` are counts.
        """
        return {}

    @classmethod
    def checked_options(cls, options: OptionValues, source: str = "") -> OptionValues:
        """Options with the content of the files that they name.

        ``source`` is the file that sets them, empty if the user does: what would run code, or send
        texts elsewhere, is refused if a file sets it.
        """
        return dict(options)


def warn_of_equal_targets(n_targets: int) -> None:
    """Warn that a member can't tell texts apart, since all of its targets are the same."""
    warn(f"all {n_targets} targets are the same: this member predicts the same for every text")


def required_annotations(data: MemberData) -> Annotations:
    """The annotations of the data; an error without them, for members that learn annotators."""
    if data.annotations is None:
        raise InputError(
            "a member that learns annotators needs annotations, but there are only targets",
            "pass annotations, or leave out the option that learns annotators",
            code="missing-labels",
        )
    return data.annotations


def predict_texts(member: Member, texts: Sequence[Text], annotators: Annotators = None) -> Floats:
    """Probabilities [N, C] of a member, which gets contexts and annotators only if there are any.

    So a recipe that reads neither need not have these parameters. Without texts, the member is not
    called.
    """
    expected_shape = (len(texts), member.n_classes)
    if not len(texts):
        return np.zeros(expected_shape)
    strings, context = split_context(texts)
    conditions: dict[str, Any] = {}
    if context is not None:
        conditions["context"] = context
    if annotators is not None:
        conditions["annotators"] = annotators
    predicted = np.asarray(member.predict_proba(strings, **conditions), dtype=float)
    if predicted.shape != expected_shape:
        raise ValueError(f"it predicts an array of shape {predicted.shape}, not {expected_shape}")
    return predicted
