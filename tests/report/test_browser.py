"""The page in a real browser: it opens from disk with no network, and what it shows can be used."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright
from report_cases import (
    ARABIC,
    HOSTILE,
    make_run,
    ratings_and_pool,
    sets_and_pool,
    texts_for,
)

from edokit import EDOEnsemble, write_report
from edokit.report import collect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for all tests; on CI it must be there."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(f"a browser is needed on CI, but none of {', '.join(BROWSERS)} is on PATH")
        pytest.skip(f"none of {', '.join(BROWSERS)} is on PATH")
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


Open = Callable[..., Any]


def opened(browser: Browser, path: Path, complaints: list[str], **options: Any) -> Any:
    """A tab with the file, offline; whatever fails or is fetched is a complaint."""
    context = browser.new_context(**{"viewport": DESK, "offline": True, **options})
    tab = context.new_page()
    tab.set_default_timeout(60_000)
    tab.on("console", lambda m: m.type == "error" and complaints.append(m.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    tab.on(
        "request",
        lambda request: (
            complaints.append(request.url)
            if request.url.startswith(("http", "ws", "ftp"))
            else None
        ),
    )
    tab.goto(path.as_uri())
    return tab


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a file in a context of its own; afterwards there may be no complaints."""
    tabs: list[Page] = []
    complaints: list[str] = []

    def call(path: Path, **options: Any) -> Any:
        tabs.append(opened(browser, path, complaints, **options))
        return tabs[-1]

    yield call
    for tab in tabs:
        tab.context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A full run whose names and texts would like to act."""
    run = make_run(
        tmp_path_factory.mktemp("browser"),
        members=[*HOSTILE[:3], HOSTILE[7], "plain"],
        classes=["no", HOSTILE[1]],
        texts=texts_for(60, [*HOSTILE, ARABIC]),
        search=20,
        compare=True,
        names=[HOSTILE[0], HOSTILE[7]],
        preset="paper-fixed",
    )
    return write_report(run)


@pytest.fixture(scope="module")
def desk(browser: Browser, page: Path) -> Iterator[tuple[Any, list[str]]]:
    """One tab at a desk's width, opened once, and its complaints."""
    complaints: list[str] = []
    tab = opened(browser, page, complaints)
    yield tab, complaints
    tab.context.close()


@pytest.fixture
def tab(desk: tuple[Any, list[str]]) -> Iterator[Any]:
    """That tab with the explorer as it was at first."""
    shared, complaints = desk
    shared.uncheck("#bare")
    shared.fill("#explorer input[type=search]", "")
    shared.locator(".chips button", has_text="All").click()
    shared.select_option("#explorer .pager select", "25")
    expect(shared.locator("#explorer .pager span")).to_have_text("1–25 of 60")
    yield shared
    assert complaints == []


def rows(tab: Page) -> list[str]:
    """The items in the order in which they are shown."""
    shown: list[str] = tab.eval_on_selector_all(
        "#explorer tbody tr", "rows => rows.map(row => row.dataset.item)"
    )
    return shown


def column(tab: Page, place: int) -> list[float]:
    """The numbers of one column."""
    cells: list[str] = tab.eval_on_selector_all(
        f"#explorer tbody tr td:nth-child({place}) span", "cells => cells.map(c => c.textContent)"
    )
    return [float(cell) for cell in cells]


def test_every_chart_is_drawn(tab: Page) -> None:
    charts = tab.query_selector_all("[data-chart]")
    assert len(charts) == 8
    for chart in charts:
        size = chart.wait_for_selector("svg").bounding_box()
        assert size["width"] > 150, chart.get_attribute("id")
        assert size["height"] > 80, chart.get_attribute("id")
        for axis in chart.query_selector_all(".role-axis-label"):
            assert len(axis.query_selector_all("text")) > 1, chart.get_attribute("id")
    assert tab.locator("#chart-weights .mark-rect path").count() == 5
    assert tab.locator("#chart-pareto-f1-ce .mark-symbol path").count() == 21


def test_names_in_charts_are_text(tab: Page) -> None:
    labels = tab.eval_on_selector_all(
        "#chart-weights .role-axis-label text", "labels => labels.map(label => label.textContent)"
    )
    assert any(label.startswith("<script>window.hacked =") for label in labels)
    assert tab.locator(".plot svg a, .plot svg image").count() == 0
    bar = tab.locator("#chart-weights .mark-rect path").first
    bar.hover(force=True)
    expect(tab.locator(".tip")).to_be_visible()
    assert tab.locator(".tip *").count() == 0
    assert [line.split(":")[0] for line in tab.inner_text(".tip").splitlines()] == [
        *("member", "weight", "CE")
    ]


def test_hostile_data_stays_inert(tab: Page) -> None:
    tab.check("#bare")
    tab.select_option("#explorer .pager select", "100")
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("#explorer img, #explorer script, #explorer b, #explorer a").count() == 0
    texts = tab.eval_on_selector_all(
        "#explorer .veil span", "spans => spans.map(s => s.textContent)"
    )
    assert set(HOSTILE) <= set(texts)


def test_sorting(tab: Page) -> None:
    head = tab.locator("#explorer thead th", has_text="spread")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    falling = column(tab, 6)
    assert falling == sorted(falling, reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    rising = column(tab, 6)
    assert rising == sorted(rising)
    assert rising[0] < falling[0]
    tab.select_option("select[aria-label='Sort by']", "annotated")
    assert column(tab, 4) == sorted(column(tab, 4), reverse=True)


def test_filtering_and_searching(tab: Page) -> None:
    chip = tab.locator(".chips button", has_text=re.compile(r"^Annotators divided\d"))
    count = int(chip.locator(".n").inner_text())
    chip.click()
    assert chip.get_attribute("aria-pressed") == "true"
    assert f"of {count}" in tab.inner_text("#explorer .pager span")
    assert min(column(tab, 4)) >= 0.636  # the entropy of 2 against 1
    assert "two thirds" in tab.inner_text(".meaning")
    tab.locator(".chips button", has_text="All").click()
    tab.fill("#explorer input[type=search]", "TRAINS late")
    expect(tab.locator("#explorer .pager span")).not_to_contain_text("of 60")
    tab.check("#bare")
    found = tab.eval_on_selector_all(
        "#explorer .veil span", "spans => spans.map(s => s.textContent)"
    )
    assert found
    assert all("trains are late" in text for text in found)
    tab.fill("#explorer input[type=search]", "nothing like this")
    tab.wait_for_selector("#explorer td.none")


def test_texts_are_blurred_until_clicked(tab: Page) -> None:
    veil = tab.locator("#explorer .veil").first
    blur = "veil => getComputedStyle(veil.firstElementChild).filter"
    assert "blur" in veil.evaluate(blur)
    radius = float(re.search(r"blur\((.+?)px\)", veil.evaluate(blur))[1])
    size = veil.evaluate("veil => parseFloat(getComputedStyle(veil.firstElementChild).fontSize)")
    assert radius > 0.8 * size  # letters and words run into each other
    veil.click()
    assert veil.evaluate(blur) == "none"
    assert "blur" in tab.locator("#explorer .veil").nth(1).evaluate(blur)
    tab.check("#bare")
    assert tab.locator("#explorer .veil").nth(1).evaluate(blur) == "none"


def test_arabic_runs_from_right_to_left(tab: Page) -> None:
    tab.fill("#explorer input[type=search]", ARABIC)
    expect(tab.locator("#explorer tbody tr")).to_have_count(1)
    words = tab.locator("#explorer .veil span")
    assert words.inner_text() == ARABIC
    assert words.evaluate("span => getComputedStyle(span).direction") == "rtl"


def test_a_trial_is_described_under_the_pointer(tab: Page) -> None:
    point = tab.locator("#chart-pareto-f1-ce .mark-symbol path").nth(3)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tab.locator(".tip")).to_be_visible()
    for name in ("trial: ", "lambda_ce: ", "MD: "):
        assert name in tab.inner_text(".tip")


@pytest.mark.slow
def test_ten_thousand_items_stay_usable(open_page: Open, tmp_path: Path) -> None:
    many = 10_000
    run = make_run(tmp_path, items=many, members=["a", "b"], texts=texts_for(many))
    tab = open_page(write_report(run))
    assert f"of {many:,}" in tab.inner_text("#explorer .pager span")
    assert tab.locator("#explorer tbody tr").count() == 25
    tab.locator("#explorer thead th", has_text="MD").locator("button").click()
    rising = column(tab, 7)
    assert rising == sorted(rising)
    tab.select_option("#explorer .pager select", "100")
    tab.locator("#explorer .pager button", has_text="next").click()
    assert "101–200 of 10,000" in tab.inner_text("#explorer .pager span")
    tab.fill("#explorer input[type=search]", "trains 9999")
    expect(tab.locator("#explorer tbody tr")).to_have_count(1)
    assert rows(tab) == ["test-9999"]
    assert tab.evaluate("document.querySelectorAll('*').length") < 20_000


def test_dark_light_and_print(open_page: Open, page: Path) -> None:
    tab = open_page(page, color_scheme="dark")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    bar = "#chart-weights .mark-rect path"
    ink = "path => getComputedStyle(path).fill"
    assert tab.evaluate(ground) == "rgb(22, 25, 29)"
    dark = tab.locator(bar).first.evaluate(ink)
    tab.click("#theme")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    expect(tab.locator(bar).first).not_to_have_css("fill", dark)
    tab.click("#theme")
    expect(tab.locator(bar).first).to_have_css("fill", dark)
    assert tab.pdf(format="A4")[:4] == b"%PDF"
    tab.emulate_media(media="print")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert tab.locator(".top").is_hidden()
    assert tab.locator("#explorer .veil span").first.is_hidden()


def test_a_phone_is_wide_enough(open_page: Open, page: Path) -> None:
    tab = open_page(page, viewport=PHONE, is_mobile=True, has_touch=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    # The later sections are closed, and drawn when they are opened.
    assert tab.locator("#chart-reliability svg").count() == 0
    tab.locator("#calibration > details > summary").click()
    tab.locator("#chart-reliability svg").first.wait_for()
    tab.locator("#methods > details > summary").click()
    tab.locator(".term").first.focus()
    shown = "term => getComputedStyle(term, '::after').content"
    assert "weight 0" in tab.locator(".term").first.evaluate(shown)
    for place in tab.query_selector_all("[data-chart]"):
        assert place.bounding_box()["width"] <= PHONE["width"]
    assert tab.locator("#explorer thead").is_hidden()
    tab.select_option("select[aria-label='Sort by']", "entropy")
    assert column(tab, 5) == sorted(column(tab, 5), reverse=True)


def test_a_phone_shows_less_than_half_of_the_length(open_page: Open, page: Path) -> None:
    tab = open_page(page, viewport=PHONE)
    length = "document.documentElement.scrollHeight"
    short = tab.evaluate(length)
    tab.evaluate("sections.forEach((section) => { section.open = true; })")
    tab.select_option("#explorer .pager select", "25")
    tab.locator("#chart-reliability svg").first.wait_for()
    assert 2 * short < tab.evaluate(length)


def test_a_link_of_the_menu_opens_its_section(open_page: Open, page: Path) -> None:
    tab = open_page(page, viewport=PHONE)
    assert tab.locator("#reproduce > details").get_attribute("open") is None
    tab.locator("nav a", has_text="Reproduce").click()
    expect(tab.locator("#reproduce > details")).to_have_attribute("open", "")


@pytest.mark.parametrize("width", [DESK["width"], 400])
def test_eleven_classes_are_all_in_the_legend(open_page: Open, tmp_path: Path, width: int) -> None:
    classes = [str(c) for c in range(-5, 6)]
    run = make_run(tmp_path, classes=classes, texts=texts_for(60), search=8)
    tab = open_page(write_report(run), viewport={"width": width, "height": 900})
    assert tab.locator("#explorer .legend bdi").all_text_contents() == classes
    colours = tab.eval_on_selector_all(
        "#explorer .legend .class", "dots => dots.map(dot => dot.style.background)"
    )
    assert len(set(colours)) == 11
    tab.click("#theme")
    assert colours != tab.eval_on_selector_all(
        "#explorer .legend .class", "dots => dots.map(dot => dot.style.background)"
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    sorted_by = "select[aria-label='Sort by'] option"
    assert "P(5)" in tab.locator(sorted_by).all_text_contents()


def test_nothing_lies_on_a_chart_and_no_backtick_is_left(tab: Page) -> None:
    assert tab.locator(".vega-actions").count() == 0
    saves = tab.query_selector_all(".save")
    assert len(saves) == len(tab.query_selector_all("[data-chart]"))
    boxes = [place.bounding_box() for place in tab.query_selector_all("[data-chart]")]
    for save in saves:
        own = save.bounding_box()
        for box in boxes:
            beside = own["x"] >= box["x"] + box["width"] or own["x"] + own["width"] <= box["x"]
            above = own["y"] + own["height"] <= box["y"] or own["y"] >= box["y"] + box["height"]
            assert beside or above
    shown = tab.evaluate(
        "[...document.querySelectorAll('main p, main li, main h1, main dd')]"
        ".filter(e => !e.closest('#explorer')).map(e => e.textContent).join('\\n')"
    )
    assert "`" not in shown
    heads = tab.locator("#explorer thead th").all_text_contents()
    assert "entropy of annotations" in heads
    assert "entropy of ensemble" in heads


def test_a_chart_is_saved_as_svg(tab: Page) -> None:
    with tab.expect_download() as download:
        tab.locator("#weights .save").first.click()
    assert download.value.suggested_filename == "edo-weights.svg"


def page_of(folder: Path, made: tuple[Any, Any]) -> tuple[Path, Any]:
    """The page of an ensemble on these annotations and predictions, and its items."""
    people, pool = made
    EDOEnsemble(ties="random").fit(pool, people).save(folder)
    data = collect(folder, predictions=pool, annotations=people)
    return write_report(data, folder / "report.html"), data.evaluation


def test_sets_are_chips_of_labels_and_can_be_chosen(open_page: Open, tmp_path: Path) -> None:
    path, evaluation = page_of(tmp_path / "sets", sets_and_pool())
    tab = open_page(path)
    p = dict(zip(evaluation.pooled.items, evaluation.pooled.probabilities, strict=True))
    for row in tab.locator("#explorer tbody tr").all()[:10]:
        shown = row.locator("td").nth(2).locator(".chip.chosen bdi").all_inner_texts()
        own = p[row.get_attribute("data-item")]
        assert shown == [evaluation.pooled.classes[c] for c in np.argsort(-own) if own[c] > 0.5]
    tab.select_option("#explorer select[aria-label='Predicted label']", label="rude")
    count = int((evaluation.pooled.probabilities[:, 1] > 0.5).sum())
    expect(tab.locator("#explorer .pager span")).to_contain_text(f"of {count}")


def test_ratings_have_cumulative_lines(open_page: Open, tmp_path: Path) -> None:
    path, evaluation = page_of(tmp_path / "ratings", ratings_and_pool())
    tab = open_page(path)
    rows = tab.locator("#explorer tbody tr")
    first = rows.first.get_attribute("data-item")
    at = list(evaluation.pooled.items).index(first)
    # The furthest item comes first; the area between its two lines is the distance.
    assert at == int(evaluation.distance.argmax())
    areas = rows.first.locator("svg.cdf rect").evaluate_all(
        "all => all.map(one => one.getAttribute('width') * one.getAttribute('height'))"
    )
    unit = (118 / 6) * 28
    assert sum(areas) / unit == pytest.approx(evaluation.distance[at], abs=0.01)
    label = rows.first.locator("svg.cdf").get_attribute("aria-label")
    below = np.cumsum(evaluation.pooled.probabilities[at])[2]
    assert f"and {round(100 * below)} %, at most 4" in label
    expect(rows.first.locator("td").nth(1)).to_contain_text("median")
    tab.locator("#chart-reliability svg").first.wait_for()
