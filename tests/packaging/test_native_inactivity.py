"""The example of a native process function: it builds on flinkcore as installed, and does what its Python form does."""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import flinkcore
from flinkcore.errors import ConfigurationError, DataError, SchemaError

EXAMPLE = Path(__file__).parents[2] / "flinkcore" / "examples" / "native_inactivity"
MAX = 2**63 - 1


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory, quick_compiler: str) -> ModuleType:
    """The example's module, built away from the checkout."""
    folder = tmp_path_factory.mktemp("native") / "inactivity"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.so", "*.c", "build"))
    installed = str(Path(flinkcore.__file__).parents[1])
    paths = os.pathsep.join([installed, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "CC": quick_compiler},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("inactivity.*.so")
    spec = importlib.util.spec_from_file_location("inactivity", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Model:
    """The same by a list of timers in order of registration."""

    def __init__(self, gap_ms: int) -> None:
        self.gap_ms = gap_ms
        self.counts: dict[Any, int] = {}
        self.timers: list[tuple[int, Any]] = []

    def process(self, key: Any, timestamp_ms: int) -> None:
        self.timers = [timer for timer in self.timers if timer[1] != key]
        self.timers.append((min(timestamp_ms + self.gap_ms, MAX), key))
        self.counts[key] = self.counts.get(key, 0) + 1

    def advance(self, watermark_ms: int) -> list[tuple[Any, int, int]]:
        due = sorted((timer for timer in self.timers if timer[0] <= watermark_ms), key=lambda timer: timer[0])
        self.timers = [timer for timer in self.timers if timer[0] > watermark_ms]
        return [(key, timestamp_ms, self.counts.pop(key)) for timestamp_ms, key in due]


def fired(counts: Any, watermark_ms: int) -> list[tuple[Any, int, int]]:
    key_ids, timestamps_ms, numbers = counts.advance(watermark_ms)
    keys = pa.record_batch(counts.key_columns())
    named = zip(*(keys[name].take(pa.array(key_ids)).to_pylist() for name in keys.schema.names), strict=True)
    return [
        (key[0] if len(key) == 1 else key, timestamp_ms, number)
        for key, timestamp_ms, number in zip(named, timestamps_ms.tolist(), numbers.tolist(), strict=True)
    ]


@pytest.mark.parametrize("kind", ["int", "str", "composite"])
@pytest.mark.parametrize("seed", range(4))
def test_random_events_and_watermarks_give_what_the_model_gives(
    example: ModuleType, kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    key_of = {"int": lambda n: n - 20, "str": lambda n: f"user {n}", "composite": lambda n: (f"{n % 7}", n)}[
        kind
    ]
    names = ["user", "item"] if kind == "composite" else ["user"]
    counts: Any = None
    model = Model(gap_ms=25)
    watermark_ms = -1_000
    for _ in range(60):
        elements = [
            (key_of(int(chance.triangular(0, 40, 5))), watermark_ms + chance.randint(-30, 60))
            for _ in range(chance.choice([0, 1, 30, 90]))
        ]
        columns = [
            [key[i] for key, _ in elements] if kind == "composite" else [key for key, _ in elements]
            for i in range(len(names))
        ]
        types = {"int": [pa.int32()], "str": [pa.string()], "composite": [pa.string(), pa.int64()]}[kind]
        timestamps = [timestamp_ms for _, timestamp_ms in elements]
        batch = pa.record_batch(
            [pa.array(timestamps, pa.timestamp("ms", "UTC") if seed else pa.int64())]
            + [pa.array(column, type) for column, type in zip(columns, types, strict=True)],
            ["ts", *names],
        )
        if counts is None:
            counts = example.InactivityCounts(batch.schema, names, "ts", 25)
        counts.process(batch)
        for key, timestamp_ms in elements:
            model.process(key, timestamp_ms)
        watermark_ms += chance.randint(0, 40)
        assert fired(counts, watermark_ms) == model.advance(watermark_ms)
    assert fired(counts, MAX) == model.advance(MAX)
    assert fired(counts, MAX) == []


def test_the_example_is_pinned_to_this_version() -> None:
    project = (EXAMPLE / "pyproject.toml").read_text()
    assert project.count(f'"flinkcore=={flinkcore.__version__}"') == project.count('"flinkcore') == 2


def test_an_element_at_the_end_of_time_does_not_overflow(example: ModuleType) -> None:
    batch = pa.record_batch({"user": [1, 2], "ts": [MAX - 1, -(2**63)]})
    counts = example.InactivityCounts(batch.schema, ["user"], "ts", 10)
    counts.process(batch)
    assert fired(counts, MAX - 1) == [(2, 10 - 2**63, 1)]
    assert fired(counts, MAX) == [(1, MAX, 1)]


def test_a_slice_of_a_batch_gives_its_own_rows(example: ModuleType) -> None:
    batch = pa.record_batch({"user": ["a", "b", "a", "b"], "ts": [0, 1, 2, 3]})
    counts = example.InactivityCounts(batch.schema, ["user"], "ts", 10)
    counts.process(batch.slice(1, 2))
    assert fired(counts, 50) == [("b", 11, 1), ("a", 12, 1)]


def test_bad_input_is_named_and_counts_nothing(example: ModuleType) -> None:
    good = pa.record_batch({"user": ["a", "b"], "ts": [0, 1]})
    counts = example.InactivityCounts(good.schema, ["user"], "ts", 10)
    for bad, error, message in (
        ({"user": ["a", "b"], "ts": pa.array([0, None])}, SchemaError, "'ts' has 1 nulls"),
        ({"user": ["a", "b"], "ts": [0.0, 1.0]}, SchemaError, "must be int64"),
        ({"user": ["a", "b"], "ts": pa.array([0, 1], pa.timestamp("us"))}, SchemaError, "must be int64"),
        ({"user": ["a", None], "ts": [0, 1]}, DataError, "row 1: the key is null"),
        ({"user": ["a", "b"]}, SchemaError, "'ts'"),
        ({"user": [1, 2], "ts": [0, 1]}, SchemaError, "'user'"),
    ):
        with pytest.raises(error, match=message):
            counts.process(pa.record_batch(bad))
    assert fired(counts, MAX) == []
    with pytest.raises(ConfigurationError, match="at least 1"):
        example.InactivityCounts(good.schema, ["user"], "ts", 0)
