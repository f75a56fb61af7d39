"""Photograph every view of the page at the widths that people have, light and dark.

    python docs/images/photograph_views.py FOLDER

writes one PNG for each view, width and theme, to be looked at before a release; pages of maps made
by hand, so that it takes a minute and no training.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "view"))

from pages import CHROMIUM, Opened, make_maps  # noqa: E402
from test_image_in_browser import image_maps  # noqa: E402

from mha_lab import show  # noqa: E402
from mha_lab.maps.attention_maps import AttentionMaps  # noqa: E402

WIDTHS = (390, 900, 1280, 1920)
VIEWS = {
    "heads": {},
    "map": {"view": "map", "head": 4, "query": 10},
    "lines": {"view": "lines", "head": 4, "query": 10},
    "overlaid": {"view": "lines", "head": 0, "over": "0,3,4", "top": 2},
    "overview": {"view": "overview"},
    "ranked": {"view": "overview", "order": "high", "score": "confidence"},
    "window": {"view": "map", "head": 4, "rows": "10-30", "cols": "5-25", "find": "fox"},
}


def pages(folder: Path) -> dict[str, tuple[Path, dict[str, object]]]:
    """Each picture's page, and what is chosen in it."""
    one = make_maps(6, 12, 64, causal=True).save(folder / "one.html")
    small = make_maps(2, 4, 13, n=3).save(folder / "small.html")
    two = show(before=make_maps(2, 5, 24), after=make_maps(2, 5, 24, seed=9), difference=True).save(
        folder / "two.html"
    )
    four = show({name: make_maps(2, 5, 13, seed=i) for i, name in enumerate("pqrs")}).save(
        folder / "four.html"
    )
    long = make_maps(2, 12, 200, causal=True).save(folder / "long.html")
    shared = AttentionMaps(
        replace(one, key_heads=(0, 0, 0, 1, 1, 1), value_norms=torch.rand(1, 6, 24))
        for one in make_maps(2, 6, 24)
    )
    weighted = shared.value_weighted().save(folder / "weighted.html")
    image = image_maps(heads=6, grid=(3, 5)).save(folder / "image.html")
    shots: dict[str, tuple[Path, dict[str, object]]] = {
        name: (one, dict(choices)) for name, choices in VIEWS.items()
    }
    shots["small"] = (small, {"view": "map", "head": 1})
    shots["two"] = (two, {})
    shots["two_maps"] = (two, {"view": "map", "head": 1})
    shots["four"] = (four, {"view": "map", "head": 1})
    shots["long"] = (long, {})
    shots["long_map"] = (long, {"view": "map", "head": 3})
    shots["weighted"] = (weighted, {})
    shots["image"] = (image, {"view": "image"})
    return shots


def main() -> None:
    """Photograph."""
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (path, choices) in pages(folder).items():
            for width in WIDTHS:
                for theme in ("light", "dark"):
                    page = browser.new_page(viewport={"width": width, "height": 800})
                    Opened(page).open(path, theme=theme, **choices)
                    page.wait_for_timeout(300)
                    page.screenshot(path=folder / f"{name}_{width}_{theme}.png", full_page=True)
                    page.close()
        browser.close()


if __name__ == "__main__":
    main()
