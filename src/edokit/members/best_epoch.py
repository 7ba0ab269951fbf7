"""Which epoch was best on the dev texts, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass

from edokit.members.fine_tuning import F1_DELTA, Criterion


@dataclass
class BestEpoch:
    """Remembers the best epoch; patience is spent by epochs that are not clearly better."""

    criterion: str
    patience: int
    epoch: int | None = None
    """The best epoch so far."""
    value: float = float("-inf")
    waited: int = 0

    def see(self, epoch: int, ce: float, f1: float) -> bool:
        """Whether this epoch is the best so far."""
        by_f1 = Criterion(self.criterion) is Criterion.F1
        value, delta = (f1, F1_DELTA) if by_f1 else (-ce, 0.0)
        clearly = value - self.value >= delta if delta else value > self.value
        self.waited = 0 if clearly else self.waited + 1
        better = value > self.value
        if better:
            self.value, self.epoch = value, epoch
        return better

    @property
    def out_of_patience(self) -> bool:
        """Whether training should stop."""
        return 0 < self.patience <= self.waited
