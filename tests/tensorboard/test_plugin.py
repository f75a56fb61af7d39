"""The tab's backend, through TensorBoard's own application."""

import json
import struct
from argparse import Namespace

import numpy as np
import pytest
import torch
from attention_app import ROOT, App
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from stored_maps import HOSTILE, H, L, N, S, make_map, with_tokens, write_run
from tensorboard.plugins import base_plugin
from torch.utils.tensorboard import SummaryWriter
from werkzeug.test import Client

from mha_lab.tensorboard.listing import runs_of
from mha_lab.tensorboard.plugin import STATIC, AttentionPlugin, AttentionPluginLoader
from mha_lab.tensorboard.writer import write_attention
from mha_lab.view.codec import Coding, decode

TAGS = [f"attention/encoder.layers.{i}.self_attn" for i in (0, 2, 10)]
TAG = TAGS[0]


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    torch.manual_seed(0)
    logdir = tmp_path_factory.mktemp("runs")
    layers = [make_map(f"encoder.layers.{i}.self_attn", seed=i) for i in (0, 2, 10)]
    write_run(logdir / "one", dict.fromkeys((0, 5, 9), layers))
    write_run(logdir / "two", {0: [make_map("decoder", kind="masked", shape=(1, 2, 5, 5))]})
    (logdir / "secret.txt").write_text("not for the web")
    return App(logdir)


def parse_all(response):
    """The header and the weights (H, L, S) of each map of an answer."""
    content = response.data
    while content:
        [length] = struct.unpack("<I", content[:4])
        header = json.loads(content[4 : 4 + length])
        codes, content = (
            content[4 + length :][: header["bytes"]],
            content[4 + length :][header["bytes"] :],
        )
        coding = Coding(**header["coding"])
        whole = np.frombuffer(codes, coding.dtype).reshape(header["shape"])
        yield header, torch.tensor(decode(coding, whole))


def parse(response):
    [found] = parse_all(response)
    return found


def test_runs(app):
    runs = app.get("/runs").json["runs"]
    assert [(run["run"], run["maps"], run["last_step"]) for run in runs] == [
        ("one", 3, 9),
        ("two", 1, 0),
    ]


def test_maps_in_the_models_order_with_every_step(app):
    maps = app.get("/maps", run="one").json["maps"]
    names = [f"encoder.layers.{i}.self_attn" for i in (0, 2, 10)]
    assert [one["name"] for one in maps] == names
    assert [one["tag"] for one in maps] == [f"attention/{name}" for name in names]
    assert all(one["steps"] == [0, 5, 9] for one in maps)
    assert all(len(one["wall_times"]) == 3 for one in maps)


def test_two_hundred_steps_are_all_there(tmp_path):
    small = make_map(shape=(1, 1, 2, 3))
    write_run(tmp_path, {step: [small] for step in range(200)})
    [one] = App(tmp_path).get("/maps", run=".").json["maps"]
    assert one["steps"] == list(range(200))


@pytest.mark.parametrize("sample", range(N))
def test_map(app, sample):
    response = app.get("/map", run="one", tag=TAG, step=5, sample=sample)
    header, weights = parse(response)
    original = make_map()
    assert header["shape"] == [H, L, S]
    assert (header["step"], header["kind"]) == (5, "cross")
    assert header["query_tokens"] == original.query_tokens[sample]
    assert header["key_tokens"] == original.key_tokens[sample]
    assert len(header["scores"]["entropy"]) == N
    assert len(header["scores"]["entropy"][sample]) == H
    torch.testing.assert_close(weights, original.weights[sample], atol=2e-5, rtol=0)


def test_several_maps_in_one_answer(app):
    tags = [f"attention/encoder.layers.{i}.self_attn" for i in (10, 0)]
    answer = app.get("/several", run="one", tag=[*tags, "none"], step=[9, 4, 0], sample=1)
    found = list(parse_all(answer))
    assert [(header["step"], header["tag"]) for header, _ in found] == [
        (step, tag) for step in (9, 0) for tag in tags
    ]
    for header, weights in found:
        alone = app.get("/map", run="one", tag=header["tag"], step=header["step"], sample=1)
        assert torch.equal(weights, parse(alone)[1])
    assert app.get("/several", run="one", tag=TAG, step=0, sample=2).data == b""
    assert app.get("/several", run="none", tag=TAG, step=0, sample=0).data == b""


def first_answer(app, **parameters):
    content = app.get("/start", **({"sample": 0, "maps": 0} | parameters)).data
    [length] = struct.unpack("<I", content[:4])
    return json.loads(content[4 : 4 + length]), content[4 + length :]


def test_the_first_answer_says_what_the_others_say(app):
    about, rest = first_answer(app, run="one", step=7, sample=1, maps=2, layer=TAGS[2])
    assert about["runs"] == app.get("/runs").json["runs"]
    assert about["maps"] == app.get("/maps", run="one").json["maps"]
    assert (about["run"], about["step"]) == ("one", 5)  # the last of the layer's up to 7
    assert about["scores"] == app.get("/scores", run="one", step=5).json["steps"][0]["maps"]
    alone = [app.get("/several", run="one", tag=TAGS[i], step=5, sample=1).data for i in (2, 0, 1)]
    assert rest == b"".join(alone)


def test_the_first_answer_chooses_as_the_page_does(app):
    about, rest = first_answer(app)
    assert (about["run"], about["step"]) == ("two", 0)  # written last
    assert rest == app.get("/several", run="two", tag="attention/decoder", step=0, sample=0).data
    about, rest = first_answer(app, run="one", layer="none")
    assert about["step"] == 9
    assert rest == app.get("/several", run="one", tag=TAGS[0], step=9, sample=0).data


def test_the_first_answer_without_what_was_chosen(app):
    runs = app.get("/runs").json["runs"]
    assert first_answer(app, run="three") == ({"runs": runs, "run": None, "bytes": 0}, b"")
    about, rest = first_answer(app, run="one", sample=2)
    assert (about["run"], rest) == ("one", b"")


def test_scores_are_those_of_the_last_step_reached(app):
    [at_seven, at_nine] = app.get("/scores", run="one", step=[7, 9]).json["steps"]
    assert (at_seven["step"], at_nine["step"]) == (7, 9)
    assert [one["step"] for one in at_seven["maps"]] == [5, 5, 5]
    assert [one["step"] for one in at_nine["maps"]] == [9, 9, 9]
    [first, *_] = at_seven["maps"]
    assert first["tag"] == TAG
    assert first["head_count"] == H
    expected = make_map().scores()["entropy"]
    torch.testing.assert_close(torch.tensor(first["scores"]["entropy"][1]), expected)
    assert first["largest"] == pytest.approx(make_map().weights.max().item())


@pytest.mark.parametrize(
    ("route", "parameters", "status", "sentence"),
    [
        ("/maps", {}, 400, "Parameter 'run' is missing; give it once."),
        ("/maps", {"run": ["one", "two"]}, 400, "Parameter 'run' is given 2 times"),
        ("/maps", {"run": "three"}, 404, "There is no run 'three' with attention maps."),
        ("/maps", {"run": "../../etc/passwd"}, 404, "There is no run '../../etc/passwd'"),
        ("/scores", {"run": "three", "step": 0}, 404, "There is no run 'three'"),
        ("/scores", {"run": "one"}, 400, "Parameter 'step' is missing"),
        ("/scores", {"run": "one", "step": [*range(65)]}, 400, "is given 65 times; 64 at most"),
        ("/several", {"run": "one", "step": 1, "sample": 0}, 400, "Parameter 'tag' is missing"),
        (
            "/several",
            {"run": "one", "step": [*range(64)], "sample": 0, "tag": [*range(17)]},
            400,
            "17 maps at 64 steps are too many",
        ),
        ("/map", {"tag": "nothing"}, 404, "There is no map 'nothing' in run 'one'."),
        ("/map", {"step": 4}, 404, f"Map '{TAG}' of run 'one' has no step 4."),
        ("/map", {"step": "4.0"}, 400, "Parameter 'step' is '4.0'; it must be a whole number."),
        ("/map", {"step": "٥"}, 400, "it must be a whole number."),
        ("/map", {"step": -1}, 400, "Parameter 'step' is -1; it must be 0 to"),
        ("/map", {"step": 10**18 * 10}, 400, "Parameter 'step'"),
        ("/map", {"step": "9" * 5000}, 400, "it must be a whole number."),
        ("/map", {"sample": 2}, 404, "There is no sample 2; this map has 2, counted from 0."),
        ("/map", {"sample": "0x1"}, 400, "Parameter 'sample' is '0x1'"),
    ],
)
def test_refusals_are_one_sentence(app, route, parameters, status, sentence):
    whole = {"run": "one", "tag": TAG, "step": 5, "sample": 0} if route == "/map" else {}
    response = app.get(route, **(whole | parameters))
    assert response.status_code == status
    assert sentence in response.text
    assert response.text.count("\n") == 0
    assert len(response.text) < 400
    assert response.mimetype == "text/plain"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


odd = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.sampled_from(["one", TAG, "5", "0", "", "..", "%00", "\0", "NaN", "1e9", "-0", " 5", "+5"]),
    st.lists(st.sampled_from(["one", "5"]), max_size=3),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(["/map", "/maps", "/several", "/scores", "/runs", "/start"]),
    st.dictionaries(st.sampled_from(["run", "tag", "layer", "step", "sample", "maps", "odd"]), odd),
)
@example("/map", {"run": "one", "tag": HOSTILE, "step": "5", "sample": "0"})
@example("/map", {"run": "one", "tag": TAG, "step": "-0", "sample": "0"})
def test_hostile_parameters_never_break_the_server(app, route, parameters):
    response = app.get(route, **parameters)
    assert response.status_code in (200, 400, 404)
    if response.status_code != 200:
        assert response.mimetype == "text/plain"
        assert response.text.endswith(".")
        assert "\n" not in response.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_only_get_is_answered(app, method):
    for route in ("/runs", "/static/index.js"):
        response = app.client.open(ROOT + route, method=method)
        assert response.status_code == 405
        assert response.text == f"Method '{method}' is not allowed; use GET."


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/../plugin.py",
        "/static/%2e%2e/plugin.py",
        "/static/..%2fplugin.py",
        "/static/....//plugin.py",
        "/static//etc/passwd",
        "/static/secret.txt",
        "/static/index.js/../../plugin.py",
        "/static/index.js%00.css",
        "/../../secret.txt",
        "/plugin.py",
    ],
)
def test_nothing_outside_the_static_folder_is_served(app, path):
    response = app.client.get(ROOT + path)
    assert response.status_code == 404
    assert b"AttentionPlugin" not in response.data
    assert b"not for the web" not in response.data


def test_the_pages_files_are_served(app):
    for path in (path for path in STATIC.rglob("*") if path.is_file()):
        response = app.client.get(f"{ROOT}/static/{path.relative_to(STATIC).as_posix()}")
        assert response.status_code == 200
        assert response.data == path.read_bytes()
        assert response.mimetype == {".js": "text/javascript", ".css": "text/css"}[path.suffix]


def test_nothing_is_written(app):
    before = {path: path.stat().st_mtime_ns for path in app.logdir.rglob("*")}
    for route in ("/runs", "/maps?run=one", f"/map?run=one&tag={TAG}&step=5&sample=0"):
        assert app.client.get(ROOT + route).status_code == 200
    assert {path: path.stat().st_mtime_ns for path in app.logdir.rglob("*")} == before


def test_runs_that_appear_grow_and_vanish(tmp_path):
    app = App(tmp_path)
    assert app.get("/runs").json == {"runs": []}
    assert app.get("/maps", run="late").status_code == 404
    write_run(tmp_path / "late", {0: [make_map()]})
    app.reload()
    assert app.get("/maps", run="late").json["maps"][0]["steps"] == [0]
    write_run(tmp_path / "late", {4: [make_map()]})
    app.reload()
    # The page has not asked for the maps again, but knows of the step from /runs.
    assert app.get("/runs").json["runs"][0]["last_step"] == 4
    assert app.get("/map", run="late", tag=TAG, step=4, sample=0).status_code == 200
    app.multiplexer._accumulators.clear()
    assert app.get("/runs").json == {"runs": []}
    gone = app.get("/map", run="late", tag=TAG, step=4, sample=0)
    assert gone.status_code == 404
    assert "vanished" in gone.text


def test_a_run_that_is_half_written(tmp_path):
    file = write_run(tmp_path, {0: [make_map()], 1: [make_map()]})
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * 2 // 3])
    app = App(tmp_path)
    assert app.get("/maps", run=".").json["maps"][0]["steps"] == [0]
    with file.open("ab") as rest:
        rest.write(whole[len(whole) * 2 // 3 :])
    app.reload()
    assert app.get("/maps", run=".").json["maps"][0]["steps"] == [0, 1]


def break_header(value):
    value.tensor.string_val[0] = b"{" + HOSTILE.encode()


def break_weights(value):
    value.tensor.string_val[1] = value.tensor.string_val[1][:-7]


def break_parts(value):
    value.tensor.tensor_shape.dim[0].size = 1
    del value.tensor.string_val[1]


@pytest.mark.parametrize("damage", [break_header, break_weights, break_parts])
def test_damaged_maps_are_404_and_hide_no_others(tmp_path, damage):
    write_damaged(tmp_path, damage)
    app = App(tmp_path)
    sound = app.get("/map", run=".", tag="attention/sound", step=0, sample=0)
    assert sound.status_code == 200
    broken = app.get("/map", run=".", tag="attention/broken", step=0, sample=0)
    assert broken.status_code == 404
    assert "Map 'attention/broken' of run '.' at step 0 cannot be shown: " in broken.text
    assert HOSTILE not in broken.text
    assert [one["name"] for one in app.get("/maps", run=".").json["maps"]] == ["broken", "sound"]
    tags = [one["tag"] for one in app.get("/scores", run=".", step=0).json["steps"][0]["maps"]]
    assert "attention/sound" in tags
    both = ["attention/broken", "attention/sound"]
    several = app.get("/several", run=".", tag=both, step=0, sample=0)
    assert [header["tag"] for header, _ in parse_all(several)] == ["attention/sound"]


def test_a_map_with_damaged_metadata_goes_by_its_tag(tmp_path):
    def damage(value):
        value.metadata.plugin_data.content = b"\xff{"

    write_damaged(tmp_path, damage)
    names = [one["name"] for one in App(tmp_path).get("/maps", run=".").json["maps"]]
    assert sorted(names) == ["attention/broken", "sound"]


def write_damaged(folder, damage):
    """A run of two maps, "broken" (after ``damage``) and "sound"."""
    with SummaryWriter(str(folder)) as writer:
        file_writer = writer._get_file_writer()

        class Damaging:
            def add_summary(self, summary, step):
                damage(summary.value[0])
                file_writer.add_summary(summary, step)

        write_attention(Damaging(), [make_map("broken"), make_map("sound")], 0)


def test_hostile_names_and_tokens_are_only_data(tmp_path):
    one = with_tokens(make_map(HOSTILE), [HOSTILE] * L, ["\ud800\0\u202e"] * S)
    write_run(tmp_path / "run", {0: [one]})
    app = App(tmp_path)
    maps = app.get("/maps", run="run")
    assert maps.mimetype == "application/json"
    tag = maps.json["maps"][0]["tag"]
    header, _ = parse(app.get("/map", run="run", tag=tag, step=0, sample=0))
    assert header["query_tokens"] == [HOSTILE] * L
    assert header["key_tokens"] == ["\ud800\0\u202e"] * S


def test_without_data_there_is_nothing():
    context = base_plugin.TBContext(data_provider=None)
    apps = AttentionPlugin(context).get_plugin_apps()
    assert Client(apps["/runs"]).get("/").json == {"runs": []}
    assert Client(apps["/maps"]).get("/?run=a").status_code == 404


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, 0),
        ({}, 0),
        ({"images": 3}, 0),
        ({"mha_lab_attention": 20}, 20),
    ],
)
def test_every_step_is_kept_unless_the_user_chose(given, kept):
    flags = Namespace(samples_per_plugin=given)
    AttentionPluginLoader().fix_flags(flags)
    assert flags.samples_per_plugin["mha_lab_attention"] == kept
    assert all(flags.samples_per_plugin[name] == value for name, value in (given or {}).items())


def test_tensorboard_finds_the_tab():
    from importlib.metadata import entry_points

    [found] = entry_points(group="tensorboard_plugins", name="mha_lab_attention")
    assert found.load() is AttentionPluginLoader


def test_runs_are_listed_as_people_count():
    class Written:
        max_step, max_wall_time = 1, 2.0

    names = ["10_custom_seed0", "2_custom_seed1", "0_custom_seed0", "b", "a"]
    listed = {name: {"map": Written} for name in names}
    found = [run["run"] for run in runs_of(listed)]
    assert found == ["0_custom_seed0", "2_custom_seed1", "10_custom_seed0", "a", "b"]
