import os
from pathlib import Path

import pytest
from pages import CHROMIUM, Opened


@pytest.fixture(scope="session")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.skip(f"needs {CHROMIUM}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, request, tmp_path):
    """A page of 1280 × 800; fails the test on any of its errors, and takes a screenshot."""
    opened = Opened(browser.new_page(viewport={"width": 1280, "height": 800}))
    yield opened
    shots = Path(os.environ.get("MHA_LAB_SCREENSHOTS", tmp_path))
    shots.mkdir(parents=True, exist_ok=True)
    opened.page.screenshot(path=shots / f"{request.node.name.replace('/', '_')}.png")
    opened.page.close()
    assert opened.errors == []
