"""Runs every program under real PyFlink and keeps what it put out in recorded/NAME.json.

    python record.py [NAME ...]

with the Python of an environment that has PyFlink (`pip install apache-flink`; see the README beside this file). Each
program runs twice in PyFlink's thread mode, which must agree, and once in its process mode, which is compared; or the
other way round, where a program names `MODE = "process"`, because the thread mode lacks what it needs.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
from canonical_values import canonical_outputs, comparable
from program_file import RECORDED, constants, load, names, sha256, source
from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

RUNS = 2
PACE_S = 0.1


def pace(env: StreamExecutionEnvironment) -> None:
    """Let the sources wait before each element, so that a watermark follows every one."""
    from_collection = env.from_collection

    def wait(value):
        time.sleep(PACE_S)
        return value

    def paced_collection(collection, type_info=None):
        # What follows runs in a task of its own: a source's thread rarely lets its watermark timers run.
        return from_collection(collection, type_info).map(wait, type_info).rebalance()

    env.from_collection = paced_collection
    env.set_buffer_timeout(0)


def environment(mode: str, paced: bool) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("python.client.executable", sys.executable)
    if mode == "process":  # a watermark waits for the end of a bundle
        configuration.set_string("python.fn-execution.bundle.size", "1")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    if paced:
        pace(env)
    return env


def outputs_of(name: str, mode: str) -> dict[str, list[Any]]:
    module = load(name)  # anew: a type that Java has seen cannot be pickled again
    cloudpickle.register_pickle_by_value(module)
    paced = constants(source(name)).get("PACED", False)
    return canonical_outputs(module.run(environment(mode, paced)))


def cause(error: BaseException) -> str:
    """Return the innermost reason in what Java or Python says of an error."""
    lines = str(error).strip().splitlines() or [repr(error)]
    reasons = [
        line.strip() for line in lines if re.match(r"\s*(Caused by: |[\w.]*(Error|Exception)\b)", line)
    ]
    return (reasons or lines)[-1][:400]


def compared(name: str, mode: str, outputs: dict[str, list[Any]]) -> Any:
    try:
        others = outputs_of(name, mode)
    except Exception as error:
        return {"error": cause(error)}
    if comparable(others, ordered=True) == comparable(outputs, ordered=True):
        return "the same"
    if comparable(others, ordered=False) == comparable(outputs, ordered=False):
        return "the same in another order"
    return {"outputs": others}


def record(name: str) -> dict[str, Any]:
    settings = constants(source(name))
    mode = settings.get("MODE", "thread")
    other_mode = "process" if mode == "thread" else "thread"
    runs = [outputs_of(name, mode) for _ in range(RUNS)]
    ordered = settings.get("ORDERED", True)
    for again in runs[1:]:
        if comparable(again, ordered) != comparable(runs[0], ordered):
            raise SystemExit(f"{name} is not deterministic: {runs[0]} and {again}")
    return {
        "program": name,
        "sha256": sha256(name),
        "pyflink": importlib.metadata.version("apache-flink"),
        "python": platform.python_version(),
        "mode": mode,
        "ordered": ordered,
        "paced": settings.get("PACED", False),
        "outputs": runs[0],
        f"{other_mode}_mode": compared(name, other_mode, runs[0]),
    }


def as_text(recorded: dict[str, Any]) -> str:
    """JSON with a line per result."""
    lines = []
    for key, value in recorded.items():
        if key == "outputs":
            outputs = [
                f"  {json.dumps(name)}: [\n   " + ",\n   ".join(map(json.dumps, values)) + "\n  ]"
                if values
                else f"  {json.dumps(name)}: []"
                for name, values in value.items()
            ]
            lines.append(' "outputs": {\n' + ",\n".join(outputs) + "\n }")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs to record; all unless given")
    chosen = parser.parse_args().names or list(names())
    # PyFlink's thread mode asks the `python` on the PATH where its library is.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    RECORDED.mkdir(exist_ok=True)
    failed = []
    for name in chosen:
        try:
            text = as_text(record(name))
        except (Exception, SystemExit) as error:
            failed.append(name)
            print(f"{name}: {cause(error)}", file=sys.stderr)
            continue
        (RECORDED / f"{name}.json").write_text(text, encoding="utf-8")
        print(name, flush=True)
    if failed:
        raise SystemExit(f"not recorded: {', '.join(failed)}")


if __name__ == "__main__":
    main()
