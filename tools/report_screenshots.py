"""Screenshots of the page: python tools/report_screenshots.py [FOLDER].

Without a folder, those of docs/images, taken from a demo's page. With one, the whole page for
2, 6 and 11 classes, ratings and sets of labels, in both themes, at the width of a desktop and of a
phone, for inspection.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from edokit import Annotations, EDOEnsemble, simulate
from edokit.datasets.simulate.regimes import REGIMES
from edokit.demo import run_demo, train_quick_members
from edokit.report import collect, write_report

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
CLASSES = {
    "2": ["polite", "rude"],
    "6": [str(label) for label in range(1, 7)],
    "11": [str(label) for label in range(-5, 6)],
    "11-nominal": [f"topic {letter}" for letter in "ABCDEFGHIJK"],
}
SCALES = ("seven-points", "three-labels")
"""Regimes of the simulator with ratings and with sets of labels."""
WIDTHS = (1280, 390)
ITEMS = (240, 160, 120)
# A phone draws the charts of closed sections when they are opened.
DRAWN = (
    "[...document.querySelectorAll('[data-chart]')]"
    ".every(chart => chart.querySelector('svg') || !chart.checkVisibility())"
)


def main() -> None:
    """Make the pages, open them, and save the screenshots."""
    path = next(program for name in BROWSERS if (program := shutil.which(name)))
    out = None
    if len(sys.argv) > 1:
        out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        if out is None:
            for_docs(browser, Path(folder))
        else:
            pages = {name: with_classes(classes) for name, classes in CLASSES.items()}
            pages |= {name: simulate(name, items=ITEMS).annotations for name in SCALES}
            for name, annotations in pages.items():
                whole_pages(browser, page_of(annotations, Path(folder) / name), out, name)
        browser.close()
    for image in sorted((out or IMAGES).glob("*.png")):
        print(f"{image.name}: {image.stat().st_size / 1000:.0f} kB")


def with_classes(classes: list[str]) -> Annotations:
    """Simulated annotations with these classes."""
    regime = replace(REGIMES["partial-panel"], balance=(1 / len(classes),) * len(classes))
    simulated = simulate(regime, items=ITEMS)
    table = simulated.annotations.to_table().to_pandas()
    names = dict(zip(simulated.annotations.classes, classes, strict=True))
    for column in {"label", "hard_label"} & set(table):
        table[column] = table[column].map(names)
    return Annotations.from_table(table, classes=classes)


def page_of(annotations: Annotations, folder: Path) -> str:
    """The page of an ensemble on simulated annotations."""
    predictions = train_quick_members(annotations, 6, 0)
    test = annotations.split("test")
    ensemble = EDOEnsemble(ties="random").fit(predictions["dev"], annotations.split("dev"))
    ensemble.save(folder)
    data = collect(folder, predictions=predictions["test"], annotations=test)
    return write_report(data, folder / "report.html").as_uri()


def whole_pages(browser: Any, page: str, out: Path, name: str) -> None:
    """The whole page in both themes, at both widths."""
    out.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        for width in WIDTHS:
            size = {"width": width, "height": 900}
            # Waiting evaluates text, which the page does not allow.
            tab = browser.new_page(viewport=size, color_scheme=theme, bypass_csp=True)
            tab.goto(page)
            tab.wait_for_function(DRAWN)
            tab.screenshot(path=out / f"{name}-{theme}-{width}.png", full_page=True)
            tab.close()


def for_docs(browser: Any, folder: Path) -> None:
    """The screenshots of the documentation."""
    run = folder / "demo"
    run_demo(out=run, command="edo demo --out demo")
    page = write_report(run).as_uri()
    summary(browser, page, IMAGES / "report-summary.png")
    items(browser, page, IMAGES / "report-items.png")
    for name in SCALES:
        scale_items(browser, page_of(simulate(name, items=ITEMS).annotations, folder / name), name)


def summary(browser: Any, page: str, out: Path) -> None:
    """What the page says first, in light: result, answers, and how often they are right."""
    tab = browser.new_page(viewport={"width": 1240, "height": 1400}, color_scheme="light")
    tab.goto(page)
    box = tab.locator("#right").bounding_box()
    IMAGES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(
        path=out, clip={"x": 0, "y": 0, "width": 1240, "height": box["y"] + box["height"]}
    )


def items(browser: Any, page: str, out: Path) -> None:
    """The explorer in dark: a named filter, texts blurred."""
    tab = browser.new_page(viewport={"width": 1240, "height": 900}, color_scheme="dark")
    tab.goto(page)
    tab.locator(".chips button", has_text="Annotators divided, ensemble confident").click()
    tab.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    tab.evaluate("document.getElementById('items').scrollIntoView()")
    tab.screenshot(path=out)


def scale_items(browser: Any, page: str, name: str) -> None:
    """The first items of ratings or sets, in light, texts blurred."""
    tab = browser.new_page(viewport={"width": 1240, "height": 620}, color_scheme="light")
    tab.goto(page)
    tab.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    tab.evaluate("document.querySelector('#explorer .legend').scrollIntoView()")
    tab.screenshot(path=IMAGES / f"report-{name}.png")


if __name__ == "__main__":
    main()
