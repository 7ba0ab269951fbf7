"""The pages of the server in a real browser: what they show, what they load, who can use them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pytest
from playwright.sync_api import expect, sync_playwright
from serve_soak import Server

from commands import assert_one_line, edo

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
TOKEN = "a-token-that-nobody-guesses"
HOSTILE = '<img src=x onerror=alert(1)> & "it\'s" </script><script>alert(2)</script>'
PHONE = {"width": 390, "height": 844}


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


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens the page of a server; afterwards there may be no complaints of the browser."""
    tabs: list[Page] = []
    complaints: list[str] = []

    def call(url: str, **options: Any) -> Any:
        tab = browser.new_context(**options).new_page()
        tab.set_default_timeout(60_000)

        # Policy violations are errors on the console; a refused token is logged there, too.
        def note(message: Any) -> None:
            if message.type == "error" and "status of 4" not in message.text:
                complaints.append(message.text)

        tab.on("console", note)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        tab.on(
            "request",
            lambda request: (
                complaints.append(request.url)
                if not request.url.startswith((url, "data:"))
                else None
            ),
        )
        tab.goto(f"{url}/")
        tabs.append(tab)
        return tab

    yield call
    for tab in tabs:
        tab.context.close()
    assert complaints == []


def ask(tab: Page, *texts: str) -> Any:
    """The cards of the answers to these texts."""
    tab.fill("#texts", "\n".join(texts))
    tab.click("#answer")
    expect(tab.locator("#status")).to_have_text(re.compile(r"answered in"))
    return tab.locator(".card")


def test_texts_become_distributions_with_bars(server: Server, open_page: Open) -> None:
    tab = open_page(server.url)
    cards = ask(tab, "How kind of you.", "", "What a rude reply.")
    expect(cards).to_have_count(2)
    body = {"texts": ["How kind of you.", "What a rude reply."]}
    answers = httpx.post(f"{server.url}/predict", json=body, timeout=60).json()
    for k, prediction in enumerate(answers["predictions"]):
        rows = cards.nth(k).locator("tbody tr")
        for row, share in enumerate(prediction["probabilities"].values()):
            shown = rows.nth(row).locator(".number").inner_text()
            assert shown == f"{100 * share:.1f} %"
            width = rows.nth(row).locator(".bar").evaluate("bar => bar.style.width")
            assert float(width.rstrip("%")) == pytest.approx(100 * share, abs=0.01)
        assert prediction["label"] in cards.nth(k).locator(".badges").inner_text()


def test_views_stand_beside_the_anonymous_answer(server: Server, open_page: Open) -> None:
    tab = open_page(server.url)
    tab.click("#views summary")
    levels = tab.locator("#attributes input")
    assert levels.count() >= 2
    levels.nth(0).check()
    name = sorted(server_people(server))[0]
    tab.fill("#names", name)
    card = ask(tab, "What a rude reply.").first
    assert card.locator("thead th").all_inner_texts()[2] == name
    numbers = card.locator("tbody tr").first.locator(".number").all_inner_texts()
    assert len(numbers) == 3
    asked = {"texts": ["What a rude reply."], "panel": [name]}
    answer = httpx.post(f"{server.url}/predict", json=asked, timeout=60).json()
    share = next(iter(answer["predictions"][0]["probabilities"].values()))
    assert numbers[2] == f"{100 * share:.1f} %"
    tab.fill("#names", "nobody-knows-her")
    tab.click("#answer")
    expect(tab.locator("#problem")).to_contain_text("unknown")


def server_people(server: Server) -> list[str]:
    """Annotators whom the bundle of the tests knows."""
    return [f"ann-{number}" for number in range(1, 4)]


def test_a_text_stays_text_and_the_command_line_sends_it(server: Server, open_page: Open) -> None:
    tab = open_page(server.url)
    card = ask(tab, HOSTILE).first
    assert card.locator("h3").inner_text() == HOSTILE
    assert tab.locator("main img").count() == 0
    words = shlex.split(tab.locator("#command").inner_text())
    assert words[:2] == ["curl", f"{server.url}/predict"]
    assert json.loads(words[words.index("-d") + 1]) == {"texts": [HOSTILE]}
    headers = {"content-type": "application/json"}
    content = words[words.index("-d") + 1].encode()
    answer = httpx.post(words[1], content=content, headers=headers, timeout=60)
    assert answer.status_code == 200


def test_names_of_classes_and_people_stay_text(server: Server, open_page: Open) -> None:
    tab = open_page(server.url)
    classes = httpx.get(f"{server.url}/about").json()["classes"]

    def with_hostile_names(route: Any) -> None:
        content = json.loads(route.fetch(timeout=60_000).text())
        if "attributes" in content:
            content["attributes"] = {HOSTILE: {HOSTILE: 2, "other": 1}}
            content["annotators"] = [HOSTILE]
        text = json.dumps(content)
        for name in classes:
            text = text.replace(json.dumps(name), json.dumps(f"{name} {HOSTILE}"))
        route.fulfill(body=text, content_type="application/json")

    for path in ("about", "people", "predict"):
        tab.route(f"{server.url}/{path}", with_hostile_names)
    tab.reload()
    expect(tab.locator("#about")).to_contain_text(f"{classes[0]} {HOSTILE}")
    tab.click("#views summary")
    expect(tab.locator("#attributes legend")).to_have_text(HOSTILE)
    card = ask(tab, "What a rude reply.").first
    expect(card.locator("tbody tr").first).to_contain_text(HOSTILE)
    assert tab.locator("main img, main script").count() == 0


def test_it_can_be_used_by_keyboard_and_heard(server: Server, open_page: Open) -> None:
    tab = open_page(server.url)
    expect(tab.locator("#texts")).to_be_focused()
    tab.keyboard.type("How kind of you.")
    tab.keyboard.press("Control+Enter")
    expect(tab.locator("#found-title")).to_be_focused()
    assert tab.locator("#status").get_attribute("role") == "status"
    unnamed = tab.evaluate(
        "[...document.querySelectorAll('input, textarea, select, button')].filter("
        "made => !(made.labels?.length || made.textContent.trim())).map(made => made.id)"
    )
    assert unnamed == []
    assert tab.get_by_role("table").first.get_by_role("rowheader").count() == 2
    tab.fill("#texts", "  ")
    tab.keyboard.press("Control+Enter")
    expect(tab.get_by_role("alert").filter(has_text="Type or paste")).to_be_visible()


def test_several_texts_can_be_ordered_and_one_may_have_lines(
    server: Server, open_page: Open
) -> None:
    tab = open_page(server.url)
    cards = ask(tab, "How kind of you.", "You are all fools and liars.", "The bus was late.")
    tab.locator("#order").select_option(index=tab.locator("#order option").count() - 1)
    shares = [
        float(card.locator("tbody tr").last.locator(".number").inner_text().rstrip(" %"))
        for card in cards.all()
    ]
    assert shares == sorted(shares, reverse=True)
    tab.check("#whole")
    ask(tab, "How kind", "of you.")
    expect(cards).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_scrolls_in_one_direction(server: Server, open_page: Open, theme: str) -> None:
    tab = open_page(server.url, viewport=PHONE, color_scheme=theme)
    tab.click("#views summary")
    for box in tab.locator("#attributes input").all():
        box.check()
    ask(tab, "What a rude reply. " * 8)
    width = tab.evaluate("document.documentElement.scrollWidth")
    assert width == PHONE["width"]
    colours = tab.evaluate(
        "(() => {const style = getComputedStyle(document.body);"
        "return [style.color, style.backgroundColor]})()"
    )
    assert contrast(*colours) > 7


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, as WCAG 2 has it."""

    def luminance(colour: str) -> float:
        linear = []
        for part in re.findall(r"\d+", colour)[:3]:
            value = int(part) / 255
            linear.append(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_a_token_is_asked_for_and_kept_in_memory(guarded: Server, open_page: Open) -> None:
    tab = open_page(guarded.url)
    expect(tab.locator("#token")).to_be_focused()
    assert tab.locator("#ask").is_hidden()
    tab.fill("#token", "another-token-altogether")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("alert").filter(has_text="not the server's")).to_be_visible()
    tab.fill("#token", TOKEN)
    tab.keyboard.press("Enter")
    expect(ask(tab, "How kind of you.")).to_have_count(1)
    assert TOKEN not in tab.content()
    assert "$EDO_SERVE_TOKEN" in tab.locator("#command").inner_text()
    stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    assert tab.evaluate(stored) == '[{},{},""]'
    assert TOKEN not in tab.url
    tab.fill("#texts", "a\nb\nc\nd")
    tab.click("#answer")
    expect(tab.locator("#problem")).to_contain_text("more than 3")


def test_pages_are_open_and_what_they_show_is_not(guarded: Server) -> None:
    for path in ("/", "/docs"):
        answer = httpx.get(guarded.url + path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"(src|href)=\"?(https?:)?//", answer.text)
        assert guarded.about["version"] not in answer.text
    for path in ("/about", "/people"):
        assert httpx.get(guarded.url + path).status_code == 401
    headers = {"authorization": f"Bearer {TOKEN}"}
    about = httpx.get(f"{guarded.url}/about", headers=headers, timeout=60).json()
    assert about["max_texts"] == 3
    assert about["classes"] == guarded.about["classes"]


def test_another_site_can_not_show_or_ask(server: Server) -> None:
    answer = httpx.get(f"{server.url}/", headers={"host": "evil.example"})
    assert answer.status_code == 421


def test_the_documentation_names_every_path_and_field(server: Server, open_page: Open) -> None:
    text = httpx.get(f"{server.url}/docs").text
    schema = httpx.get(f"{server.url}/openapi.json").json()
    for path in schema["paths"]:
        assert f"<code>{path}</code>" in text
    for field in schema["components"]["schemas"]["Prediction"]["properties"]:
        assert f"<dt>{field}</dt>" in text
    assert "<script" not in text
    tab = open_page(server.url)
    tab.goto(f"{server.url}/docs")
    expect(tab.get_by_role("heading", name="POST /predict")).to_be_visible()


def test_no_page_and_a_log_without_texts(bundle: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    with Server(bundle, tmp_path, "--no-page", "--log", str(log)) as running:
        assert httpx.get(f"{running.url}/").status_code == 404
        assert httpx.get(f"{running.url}/docs").status_code == 200
        body = {"texts": ["quiet marmalade", "a harbour"]}
        assert httpx.post(f"{running.url}/predict", json=body, timeout=60).status_code == 200
        assert httpx.get(f"{running.url}/marmalade?text=marmalade").status_code == 404
        assert running.stop() == 0
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    seen = [(line["method"], line["path"], line["status"], line["texts"]) for line in lines]
    assert seen == [
        ("GET", "other", 404, None),
        ("GET", "/docs", 200, None),
        ("POST", "/predict", 200, 2),
        ("GET", "other", 404, None),
    ]
    assert all(line["seconds"] >= 0 and line["time"].endswith("Z") for line in lines)
    assert "marmalade" not in log.read_text(encoding="utf-8")


def test_a_log_that_can_not_be_written_is_refused(bundle: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "access.jsonl"
    assert_one_line(edo("serve", bundle, "--port", "0", "--log", nowhere), "--log", "nowhere")
    done = edo("serve", bundle, "--log", "-", "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["code"] == "conflicting-options"
