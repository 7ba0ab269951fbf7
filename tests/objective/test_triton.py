"""Triton's kernels, in its interpreter: a GPU runs them, and CI has neither."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from objective_cases import make_case

from edokit._errors import InputError
from edokit.objective import Summaries, kernels

torch = pytest.importorskip("torch")
on_gpu = torch.cuda.is_available()
if not on_gpu and find_spec("triton"):
    os.environ["TRITON_INTERPRET"] = "1"  # read on import
# Before 3.9, the interpreter does not know numpy 2.4.
pytest.importorskip("triton", minversion="3.6" if on_gpu else "3.9")

from edokit.objective import _triton  # noqa: E402

FIELDS = ("class_counts", "soft_counts", "hits", "distances", "log_losses")


@pytest.fixture(autouse=True)
def _in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU tensors take the kernels, too."""
    monkeypatch.setattr(kernels, "_triton_kernels", lambda P, q: _triton)


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    device = "cuda" if on_gpu else "cpu"
    return [torch.from_numpy(np.ascontiguousarray(values)).to(device) for values in arrays]


@pytest.mark.parametrize(
    ("items", "members", "classes"),
    [(1, 3, 3), (300, 1, 2), (777, 10, 2), (90, 12, 20), (1030, 13, 2), (300, 31, 2), (70, 23, 5)],
)
def test_sums_are_those_of_float64(items: int, members: int, classes: int) -> None:
    P, q, y, _, _ = make_case(items, members, classes, seed=2, zeros=0.1)
    P = P.astype(np.float32)
    exact = Summaries.from_arrays(P.astype(np.float64), q, y)
    found = Summaries.from_arrays(*tensors(P, q, y))
    again = Summaries.from_arrays(*tensors(P, q, y))
    for field in FIELDS:
        values = getattr(found, field)
        assert values.dtype is torch.float64
        assert bool((values == getattr(again, field)).all())
        np.testing.assert_allclose(values.cpu(), getattr(exact, field), rtol=2e-6, atol=1e-6)


def test_more_members_go_through_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    P, q, y, _, _ = make_case(400, 14, 2, seed=3)
    P = P.astype(np.float32)
    whole = Summaries.from_arrays(*tensors(P, q, y))
    monkeypatch.setattr(_triton, "_BLOCK", 150 * 14 * 2)
    parts = Summaries.from_arrays(*tensors(P, q, y))
    for field in FIELDS:
        np.testing.assert_allclose(getattr(parts, field).cpu(), getattr(whole, field).cpu(), 2e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy, in the interpreter
@pytest.mark.parametrize("members", [1, 14])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e38, -0.5, None])
def test_what_is_no_probability_is_refused(members: int, wrong: float | None) -> None:
    P, q, y, _, _ = make_case(200, members, 2, seed=4)
    P = P.astype(np.float32)
    if wrong is None:
        y = np.where(np.arange(200) == 150, 2, y)
    else:
        P[150, 0, 1] = wrong
    match = "hard label codes" if wrong is None else "must be finite"
    with pytest.raises(InputError, match=match):
        Summaries.from_arrays(*tensors(P, q, y))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy, in the interpreter
@pytest.mark.parametrize(
    ("first", "match"), [(0.5, "must sum to one .* from 0.5 to 1"), (np.nan, "must be finite")]
)
def test_the_first_rows_are_looked_at(first: float, match: str) -> None:
    P, q, y, _, _ = make_case(100, 3, 3, seed=5)
    P = P.astype(np.float32)
    P[7, 1] *= first
    with pytest.raises(InputError, match=match):
        Summaries.from_arrays(*tensors(P, q, y))


@pytest.mark.parametrize(("items", "members", "classes"), [(130, 14, 2), (37, 14, 3), (129, 4, 20)])
def test_memory_that_nobody_wrote_into_is_never_read(
    items: int, members: int, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    P, q, y, _, _ = make_case(items, members, classes, seed=6)
    given = tensors(P.astype(np.float32), q, y)
    found = Summaries.from_arrays(*given)
    plain = torch.Tensor.new_empty

    def dirty(*given: object, **options: object) -> torch.Tensor:
        memory = plain(*given, **options)
        return memory.fill_(torch.nan) if memory.is_floating_point() else memory

    monkeypatch.setattr(torch.Tensor, "new_empty", dirty)
    again = Summaries.from_arrays(*given)
    for field in FIELDS:
        assert bool((getattr(found, field) == getattr(again, field)).all())


def test_labels_and_predictions_of_any_layout() -> None:
    P, q, y, _, _ = make_case(65, 5, 2, seed=7)
    P, q, y = tensors(P.astype(np.float32), q, y)
    found = Summaries.from_arrays(P, q, y)
    # Columns that are not neighbours, another type of labels, memory that is not aligned.
    apart = P.transpose(0, 1).contiguous().transpose(0, 1)
    shifted = torch.cat((P.new_zeros(1), P.reshape(-1)))[1:].view(P.shape)
    for other in (apart, shifted):
        again = Summaries.from_arrays(other, q.float(), y.int())
        for field in FIELDS:
            np.testing.assert_allclose(
                getattr(again, field).cpu(), getattr(found, field).cpu(), rtol=2e-6, atol=1e-6
            )


def test_kernels_are_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []

    class Kernel:
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            name = "compiled" if len(grid) == 3 else "search"
            return lambda *given, **options: ways.append(name) or Kernel()

    monkeypatch.setattr(_triton, "_compiled", {})
    kernel, memory = Kernel(), torch.zeros(64)
    for tensor, items in ((memory, 5), (memory, 6), (memory[1:], 5), (memory, 2**31)):
        _triton._launch(kernel, (tensor,), 3, (items,), (10, 2), 4, None)
    _triton._launch(kernel, (memory.double(),), 3, (5,), (10, 2), 4, None)
    # Numbers of more than 32 bits, memory that is not aligned and other types are searched for.
    assert ways == ["search", "compiled", "search", "search", "search"]
