"""Keys on the image whose patches they are."""

import numpy as np
import pytest
import torch
from pages import patterned

from mha_lab import AttentionMap, ImageTokens
from mha_lab.view.gallery import Gallery


def image_maps(heads=3, grid=(3, 5)):
    rng = np.random.default_rng(0)
    image = rng.random((3, 24, 40))
    tokens = [ImageTokens(image, grid=grid)]
    weights = patterned(heads, 16)
    weights[0, 1, 0] = torch.eye(16)[8]  # the class token looks at patch 7: row 1, column 2
    return Gallery([AttentionMap("blocks.0.attn", weights).with_tokens(tokens, tokens)])


@pytest.mark.browser
def test_patches_are_drawn_where_they_lie_and_the_class_token_apart(page, tmp_path):
    page.open(image_maps().save(tmp_path / "a.html"), view="image", palette="ink")
    assert page.get(".on-image canvas").count() == 3
    page.get(".others").nth(1).filter(has_text="[class] 0").wait_for()
    canvas = page.get(".on-image canvas").nth(1)
    box = canvas.bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    assert page.told() == ["[class]  0", "1,2  8"]
    assert page.get(".tooltip .weight").text_content() == "1.0000"
    page.page.mouse.click(box["x"] + 3, box["y"] + 3)
    page.get(".patch").filter(has_text="patch 0,0").wait_for()
    assert page.state("query") == "1"
    page.button("[class]").click()
    page.get(".patch").filter(has_text="click a patch").wait_for()


def test_the_labels_of_an_image():
    tokens = ImageTokens(np.zeros((6, 10)), grid=(2, 3), first=2)
    assert list(tokens) == ["[class]", "[extra 1]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert len(tokens) == 8
    about = tokens.about()
    assert about["src"].startswith("data:image/jpeg;base64,")
    assert (about["grid"], about["first"]) == ([2, 3], 2)


@pytest.mark.parametrize(
    "image",
    [torch.rand(3, 7, 5), torch.rand(1, 7, 5), np.zeros((7, 5, 3), np.uint8), torch.rand(7, 5)],
)
def test_images_in_every_layout(image):
    assert ImageTokens(image, grid=(1, 1)).about()["src"].startswith("data:image/jpeg")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": (0, 3)}, r"grid=\(0, 3\) must be \(rows, columns\), each an int of at least 1"),
        ({"first": -1}, "first=-1 must be an int of at least 0"),
        ({"image": np.zeros((2, 3, 4, 5))}, r"image is ndarray of shape \(2, 3, 4, 5\)"),
    ],
)
def test_images_that_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        ImageTokens(**{"image": np.zeros((6, 10)), "grid": (2, 3), **change})


def test_an_image_of_other_patches_is_not_drawn():
    one = AttentionMap("x", patterned(2, 16))
    tokens = [ImageTokens(np.zeros((6, 10)), grid=(2, 3))]
    assert one.with_tokens(tokens, tokens).images is None
