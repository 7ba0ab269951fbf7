"""A page of a run in which every name, id and sentence would like to act."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from report_cases import HOSTILE, make_run, texts_for
from test_browser import browser, open_page
from test_report_page import page_of

from edokit import Predictions, read_predictions, write_predictions, write_report
from edokit._io.documents import read_json, write_json
from edokit._io.tables import read_table, write_table

__all__ = ["browser", "open_page"]
ACTING = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>'


def hostile(value: Any) -> Any:
    """The same JSON with every text made to act; names of fields and short words stay."""
    if isinstance(value, dict):
        return {key: hostile(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner) for inner in value]
    return f"{value} {ACTING}" if isinstance(value, str) and " " in value else value


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Annotators, items, groups, the folder, the command, sentences: all of them."""
    place = tmp_path_factory.mktemp("hostile")
    folder = make_run(
        place / "<img src=x onerror=alert(1)>",
        items=20,
        texts=texts_for(20, HOSTILE),
        search=5,
        compare=True,
        names=[ACTING],
    )
    for role in ("dev", "test"):
        table = read_table(folder / f"{role}.parquet")
        for name in ("item", "annotator"):
            acting = pa.array([f"{value}{ACTING}" for value in table[name].to_pylist()])
            table = table.set_column(table.column_names.index(name), name, acting)
        split = pa.array([ACTING] * table.num_rows)
        write_table(table.append_column("split", split), folder / f"{role}.parquet")
        predictions = read_predictions(folder / f"{role}.npz")
        items = [f"{item}{ACTING}" for item in predictions.items]
        second_predictions = Predictions.from_arrays(
            predictions.probabilities,
            items=items,
            members=predictions.members,
            classes=predictions.classes,
            layout="NKC",
        )
        write_predictions(second_predictions, folder / f"{role}.npz")
    for name in ("ensemble/ensemble.json", "search/search.json", "compare/methods.json"):
        write_json(hostile(read_json(folder / name)), folder / name)
    record = read_json(folder / "run.json")
    record["command"] += " " + ACTING
    record["versions"] = {ACTING: ACTING}
    record["inputs"][ACTING] = {"path": ACTING, "sha256": ACTING}
    write_json(record, folder / "run.json")
    return folder


def test_nothing_of_it_becomes_an_element(run: Path) -> None:
    page = page_of(run)
    assert len(page.scripts) == 3
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object", "b")]
    assert not [(tag, name) for tag, attrs in page.tags for name in attrs if name.startswith("on")]
    assert ACTING in page.text
    assert ACTING in str(page.data["items"])


def test_nothing_of_it_acts_in_a_browser(run: Path, open_page: Any) -> None:
    tab = open_page(write_report(run))
    tab.wait_for_selector("#explorer tbody tr")
    tab.check("#bare")
    tab.locator("#explorer tbody tr").first.click()
    tab.locator("#chart-weights .mark-rect path").first.hover(force=True)
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img, main script").count() == 0
    first = tab.locator("#explorer tbody tr").first
    assert ACTING in first.get_attribute("data-item")
    blur = "veil => getComputedStyle(veil.firstElementChild).filter"
    tab.uncheck("#bare")
    for veil in tab.locator(".veil").all()[:20]:
        assert "blur" in veil.evaluate(blur)
