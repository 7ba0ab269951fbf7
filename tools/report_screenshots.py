"""The screenshots of docs/images, taken from a demo's page: python tools/report_screenshots.py."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from edokit.demo import run_demo
from edokit.report import write_report

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> None:
    """Run the demo, open its page, and save two screenshots."""
    path = next(found for name in BROWSERS if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        run = Path(folder) / "demo"
        run_demo(out=run, command="edo demo --out demo")
        page = write_report(run).as_uri()
        browser = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        summary(browser, page, IMAGES / "report-summary.png")
        items(browser, page, IMAGES / "report-items.png")
        browser.close()
    for image in sorted(IMAGES.glob("report-*.png")):
        print(f"{image.name}: {image.stat().st_size / 1000:.0f} kB")


def summary(browser: Any, page: str, out: Path) -> None:
    """The head of the page in light, to the end of the summary."""
    tab = browser.new_page(viewport={"width": 1240, "height": 1400}, color_scheme="light")
    tab.goto(page)
    box = tab.locator("#summary").bounding_box()
    IMAGES.mkdir(parents=True, exist_ok=True)
    tab.screenshot(
        path=out, clip={"x": 0, "y": 0, "width": 1240, "height": box["y"] + box["height"]}
    )


def items(browser: Any, page: str, out: Path) -> None:
    """The explorer in dark: a named filter, the simulated texts shown."""
    tab = browser.new_page(viewport={"width": 1240, "height": 900}, color_scheme="dark")
    tab.goto(page)
    tab.locator(".chips button", has_text="Annotators divided, ensemble confident").click()
    tab.check("#bare")
    tab.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    tab.evaluate("document.getElementById('items').scrollIntoView()")
    tab.screenshot(path=out)


if __name__ == "__main__":
    main()
