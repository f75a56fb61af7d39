"""What ``show`` may be given, and what it says to the rest."""

import json

import pytest
import torch
from pages import make_maps, patterned
from torch import nn

from mha_lab import AttentionMap, ImageTokens, record_attention, show
from mha_lab.maps.attention_maps import AttentionMaps
from mha_lab.view.gallery import Gallery


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"head": 3},
            ValueError,
            "head=3 is not in 'encoder.layers.0.self_attn': it has .* 0 to 2",
        ),
        ({"head": -1}, ValueError, "head=-1 is not in"),
        ({"head": "first"}, ValueError, "head='first' must be the number of a head, 'all' or"),
        ({"head": True}, ValueError, "head=True must be"),
        ({"samples": 0}, ValueError, "samples=0 must be at least 1"),
        (
            {"samples": [1]},
            ValueError,
            r"samples=\[1\] are not in the maps: there are samples 0 to",
        ),
        ({"samples": [-1]}, ValueError, r"samples=\[-1\] must name"),
        ({"samples": []}, ValueError, r"samples=\[\] must name at least one index"),
        ({"samples": "all"}, TypeError, "samples='all' must be an int or a list of ints, not str"),
        ({"max_size": 2.5}, TypeError, "max_size=2.5 must be an int, not float"),
        ({"height": "tall"}, TypeError, "height='tall' must be an int, not str"),
        ({"height": 0}, ValueError, "height=0 must be at least 1"),
        ({"difference": "yes"}, TypeError, "difference='yes' must be a bool"),
        ({"difference": True}, ValueError, "difference=True needs two lists of maps"),
        ({"view": "image"}, ValueError, "view='image' needs keys that are patches of an image"),
        ({"layer": 1}, ValueError, "layer=1 is not among the maps"),
        ({"before": []}, ValueError, "no maps of 'before' to show: the list is empty"),
        ({"after": torch.rand(1, 1, 2, 2)}, TypeError, "after holds Tensor where a map belongs"),
    ],
)
def test_options_that_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        make_maps().show(**options)


@pytest.mark.parametrize("given", ["maps", nn.Linear(2, 2), [torch.rand(2, 2)], 7])
def test_what_is_no_map(given):
    with pytest.raises(TypeError, match="where a map belongs; show needs those that"):
        show(given)


def test_lists_of_lists_are_told_how_to_be_joined():
    with pytest.raises(TypeError, match=r"join lists with \+, or name them"):
        show([make_maps(), make_maps()])


def test_five_panes_are_refused():
    with pytest.raises(
        ValueError, match=r"5 lists of maps are too many .* at most 4; leave out 'e'"
    ):
        show(dict.fromkeys("abcde", make_maps(1, 1, 5)))
    assert len(show(dict.fromkeys("abcd", make_maps(1, 1, 5))).parts) == 4


def test_one_map_shows_itself_and_stands_beside_others():
    one, others = make_maps()[0], make_maps(3)
    assert "<iframe" in one._repr_html_()
    assert len(one.show(view="lines").parts) == 1
    runs = [part.run for part in show(before=one, after=others).parts]
    assert runs == ["before", "after", "after", "after"]
    assert [part.run for part in show({1: one, 2: one}).parts] == ["1", "2"]
    assert AttentionMap("x", torch.rand(0, 1, 2, 2))._repr_html_() is None


def test_a_list_beside_itself():
    maps = make_maps(1)
    assert [part.run for part in maps.show(before=maps).parts] == ["before", "after"]
    assert len(show(one for one in maps).parts) == 1


def test_the_head_is_the_models_and_the_layer_may_be_a_glob():
    one = AttentionMap("a.b", patterned(2, 5), heads=(3, 5))
    assert one.show(head=5).state["head"] == "1"
    with pytest.raises(ValueError, match=r"head=1 is not in 'a.b': it has the heads 3, 5"):
        one.show(head=1)
    assert make_maps().show(layer="*.1.*").state["layer"] == "encoder.layers.1.self_attn"


def test_two_recordings_in_one_list_are_told_apart():
    maps = make_maps(2) + make_maps(2, seed=5)
    parts = maps.show().parts
    names = [part.name for part in parts]
    assert names == [*(one.name for one in maps[:2]), *(f"{one.name} (2)" for one in maps[:2])]
    assert json.loads(parts[2].header)["name"] == names[2]


def test_a_list_in_every_respect():
    maps = AttentionMaps(make_maps(3))
    for made in (maps + maps[:1], maps.copy(), maps[::-1]):
        assert isinstance(made, AttentionMaps)
    assert (maps + list(maps[:1])) == [*maps, maps[0]]
    assert maps.index(maps[2]) == 2
    assert make_maps(1)[0] not in maps
    assert len(set(maps)) == 3
    assert sorted(maps, key=lambda one: one.name, reverse=True)[0] is maps[2]


@pytest.mark.parametrize("kind", ["HTML", "html", "png", "PNG", "svg", "npz"])
def test_every_kind_of_file(tmp_path, kind):
    maps = AttentionMaps(make_maps(2, 2, 5))
    for given in (maps, maps[0]):
        assert given.save(tmp_path / f"a.{kind}").stat().st_size > 0
    assert make_maps(1, 1, 3).save(tmp_path / "b.HTML").exists()


def test_files_that_cannot_be_written(tmp_path):
    maps = AttentionMaps(make_maps(1, 1, 3))
    (tmp_path / "folder.html").mkdir()
    for given in (maps, maps[0], maps.show()):
        with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist; make it first"):
            given.save(tmp_path / "no" / "a.html")
        with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file in it"):
            given.save(tmp_path / "folder.html")
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.html or \.npz"):
        maps.save("a.pdf")
    with pytest.raises(ValueError, match=r"must end in \.html"):
        Gallery(maps).save("a.png")
    for kind in ("npz", "png", "html"):
        with pytest.raises(ValueError, match=r"no maps|maps is empty"):
            AttentionMaps().save(tmp_path / f"a.{kind}")


def test_all_maps_come_back_from_one_file(tmp_path):
    image = torch.rand(3, 8, 12)
    module, x = nn.MultiheadAttention(12, 2, batch_first=True), torch.randn(1, 7, 12)
    with record_attention(module, tokens=ImageTokens(image, (2, 3)), values=True) as maps:
        module(x, x, x)
        module(x, x, x[:, :, :])
    path = maps.save(tmp_path / "a.npz")
    back = AttentionMaps.load(path)
    assert [one.name for one in back] == [one.name for one in maps]
    for one, other in zip(back, maps, strict=True):
        torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=0)
        torch.testing.assert_close(one.value_norms, other.value_norms, rtol=0, atol=0)
        assert one.query_tokens == other.query_tokens
        assert one.images[0].about() == other.images[0].about()
    with pytest.raises(ValueError, match=r"holds 2 maps; read them with AttentionMaps.load"):
        AttentionMap.load(path)


def test_files_that_are_no_maps(tmp_path):
    import numpy as np

    np.savez(tmp_path / "a.npz", x=np.ones(3))
    (tmp_path / "b.npz").write_text("text")
    for name, said in (("a", "holds no attention maps"), ("b", "is no .npz file of arrays")):
        with pytest.raises(ValueError, match=said):
            AttentionMap.load(tmp_path / f"{name}.npz")
    half = AttentionMap("x", patterned(1, 3).bfloat16()).save(tmp_path / "c.npz")
    assert AttentionMap.load(half).weights.dtype == torch.float32
