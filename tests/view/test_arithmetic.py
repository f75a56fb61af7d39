"""The page's arithmetic, run by node where it is there, against numpy."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from mha_lab.view.bundle import bundled_module

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def run(folder, module, script, **values):
    """What the expression ``script`` is, of the module's exports and some values."""
    (folder / "module.mjs").write_text(bundled_module(module))
    names = ", ".join(values)
    (folder / "main.mjs").write_text(
        f'import * as module from "./module.mjs";\n'
        f"const {{ {names} }} = {json.dumps(values)};\n"
        f"const found = ({script});\nconsole.log(JSON.stringify(found));\n"
    )
    ran = subprocess.run(["node", folder / "main.mjs"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def shares(n, m):
    """(m, n): how much of each of m equal pixels each of n weights takes."""
    ends = np.arange(n + 1) * m / n
    edges = np.arange(m + 1)
    low = np.maximum(ends[None, :-1], edges[:-1, None])
    high = np.minimum(ends[None, 1:], edges[1:, None])
    return np.maximum(high - low, 0)


@pytest.mark.parametrize(("rows", "columns", "height", "width"), [(31, 47, 11, 13), (7, 7, 7, 5)])
@pytest.mark.parametrize("coded", [True, False])
def test_a_thumbnail_is_the_mean_over_areas(tmp_path, rows, columns, height, width, coded):
    generator = np.random.default_rng(0)
    weights = generator.random((rows, columns)).astype(np.float32) ** 4
    weights[:, -columns // 3 :] = 0  # blocked
    weights[2, 1] = np.nan
    levels = np.sqrt(np.minimum(weights, 1)) * 255
    values = np.where(weights == 0, 0, np.floor(levels + 0.5) + 1)
    meaning = [i / 255 for i in range(255)] + [None]  # any table
    if coded:
        codes = generator.integers(0, 255, (rows, columns))
        codes[:, -columns // 3 :] = 0
        codes[2, 1] = 255
        weights = np.array([np.nan if one is None else one for one in meaning])[codes]
        values = np.where(codes == 0, 0, np.floor(np.sqrt(weights) * 255 + 0.5) + 1)
    down, across = shares(rows, height), shares(columns, width).T
    expected = down @ np.nan_to_num(values) @ across
    odd = down @ np.isnan(values) @ across > 0
    found = run(
        tmp_path,
        "draw/shrunk.js",
        """(() => {
          const numbers = (list) => Float32Array.from(list, (x) => x ?? NaN);
          const known = { codes: Uint8Array.from(codes), meaning: numbers(meaning) };
          const map = {
            rows, columns, top: () => 1, of: () => numbers(weights),
            codesOf: () => coded ? known : null, maps: [],
          };
          const scale = { relative: "head", curve: "root", largest: 1, maps: [] };
          const all = module.shrunk(map, 0, scale, width, height);
          const means = [...all.subarray(0, width * height)];
          return { means, places: means.map(module.placeAt) };
        })()""",
        rows=rows,
        columns=columns,
        width=width,
        height=height,
        coded=coded,
        meaning=meaning,
        codes=codes.ravel().tolist() if coded else [],
        weights=[None if np.isnan(one) else float(one) for one in weights.ravel()],
    )
    means, places = np.reshape(found["means"], expected.shape), np.array(found["places"])
    np.testing.assert_allclose(
        means[~odd], expected[~odd], rtol=0, atol=1e-5
    )  # of a thousand million, which stands for nan
    places = places.reshape(expected.shape)
    assert (places[odd] == -2).all()
    assert ((places == -1) == (expected == 0)).all()  # only nothing has no colour
    some = ~odd & (expected > 2)
    np.testing.assert_allclose(places[some], expected[some] - 1, atol=0.5 + 1e-6)


@pytest.mark.parametrize("rows", [31, 257])  # of the longer one, every fourth row is looked at
def test_what_is_large_in_a_head_leaves_out_the_key_that_all_rest_on(tmp_path, rows):
    weights = np.tril(np.full((rows, rows), 0.001))
    own = 0.1 + 0.05 * (np.arange(rows) % 2)
    weights[:, 0] = 0.5  # by far the most of what any key gets
    weights[np.arange(rows), np.arange(rows)] += own
    weights[np.arange(1, rows), np.arange(rows - 1)] += 0.01
    weights[3, 2] = np.nan
    top = run(
        tmp_path,
        "data/map_data.js",
        """(() => {
          const coding = { bits: 16, zero: 0, levels: 65534, scale: 1 };
          const header = { shape: [1, rows, rows], coding, scores: {} };
          const map = new module.MapData(header, new Uint8Array(2 * rows * rows));
          map.decoded = Float32Array.from(weights, (x) => x ?? NaN);
          return map.top(0);
        })()""",
        rows=rows,
        weights=[None if np.isnan(one) else float(one) for one in weights.ravel()],
    )
    assert top == pytest.approx(0.15 if rows == 31 else 0.1, abs=0.011)
