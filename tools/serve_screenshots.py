"""Screenshots of the server's page: python tools/serve_screenshots.py [FOLDER].

Without a folder, that of docs/images. With one, the whole page for classes, points of a scale and
sets of labels, in both themes, at the width of a desktop and of a phone, for inspection.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from serve_soak import Server

from edokit import EDOEnsemble, EDOWarning, fit, simulate, train_members
from edokit.bundle import Bundle
from edokit.members import parse_groups

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
TEXTS = (
    "on the way home all of you were genuinely disappointing, back to work",
    "nothing special about dog owners, the heatwave reached Kelm",
    "Τι ωραία μέρα για έναν περίπατο!",
)
VIEWS = {"seven-points": "literal", "two-camps": "concerned", "three-labels": "lenient"}
"""The level whose view is shown for each kind of the simulator."""
WIDTHS = (1200, 390)


def make_run(kind: str, folder: Path) -> Path:
    """A bundle of three quick members that know how people differ."""
    people = simulate(kind, items=(400, 100, 5), random_state=1).annotations
    learned = people.split("train", "dev")
    train_members(learned, parse_groups("linear:3"), out=folder / "members", cross_fit=3, jobs=1)
    predictions = folder / "members" / "predictions" / "fit.npz"
    fit(predictions, learned, out=folder / "ensemble", ensemble=EDOEnsemble())
    Bundle.create(folder / "ensemble", folder / "members", folder / "bundle")
    return folder / "bundle"


def asked(
    browser: Browser, url: str, view: str, width: int, theme: str, texts: Sequence[str] = TEXTS
) -> Page:
    """A tab in which the texts are answered, beside the answer of a level."""
    size = {"width": width, "height": 900}
    tab = browser.new_page(viewport=size, color_scheme=theme)
    tab.goto(url)
    tab.fill("#texts", "\n".join(texts))
    tab.click("#views summary")
    tab.get_by_label(view).check()
    tab.click("#answer")
    tab.wait_for_selector(".card")
    tab.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    return tab


def main() -> None:
    """Serve bundles, ask them, and save the screenshots."""
    warnings.simplefilter("ignore", EDOWarning)
    path = next(program for name in BROWSERS if (program := shutil.which(name)))
    out = None
    kinds = ["two-camps"]
    if len(sys.argv) > 1:
        out = Path(sys.argv[1])
        kinds = list(VIEWS)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=ARGUMENTS)
        for kind in kinds:
            folder = Path(name) / kind
            folder.mkdir()
            with Server(make_run(kind, folder), folder) as server:
                if out is None:
                    tab = asked(browser, server.url, VIEWS[kind], 1000, "light", TEXTS[::2])
                    last_card = tab.locator(".card").last.bounding_box()
                    IMAGES.mkdir(parents=True, exist_ok=True)
                    height = last_card["y"] + last_card["height"] + 16
                    box = {"x": 0, "y": 0, "width": 1000, "height": height}
                    tab.screenshot(path=IMAGES / "serve-page.png", clip=box, full_page=True)
                    continue
                out.mkdir(parents=True, exist_ok=True)
                for theme in ("light", "dark"):
                    for width in WIDTHS:
                        tab = asked(browser, server.url, VIEWS[kind], width, theme)
                        file = out / f"{kind}-{theme}-{width}.png"
                        tab.screenshot(path=file, full_page=True)
                        tab.close()
        browser.close()


if __name__ == "__main__":
    main()
