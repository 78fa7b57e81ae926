"""Functions that import modules of a folder, and read files of archives, as in the page on dependencies."""

import shutil
import tempfile
from pathlib import Path

from pyflink.common import Types
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment


class Model(MapFunction):
    """It has the folder of an archive by the name that the program gave it, and the other by the archive's own."""

    def open(self, runtime_context: RuntimeContext):
        with open("model/weights/factor.txt") as named, open("offset.zip/offset.txt") as unnamed:
            self.factor, self.offset = int(named.read()), int(unnamed.read())

    def map(self, value):
        from my_rules.rounding import rounded

        return rounded(value * self.factor + self.offset)


def run(env: StreamExecutionEnvironment):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "modules" / "my_rules").mkdir(parents=True)
        (folder / "modules" / "my_rules" / "__init__.py").write_text("")
        (folder / "modules" / "my_rules" / "rounding.py").write_text(
            "def rounded(number):\n    return number // 10 * 10\n"
        )
        (folder / "first" / "weights").mkdir(parents=True)
        (folder / "first" / "weights" / "factor.txt").write_text("7")
        (folder / "second").mkdir()
        (folder / "second" / "offset.txt").write_text("5")
        shutil.make_archive(f"{folder}/py_model", "zip", folder / "first")
        shutil.make_archive(f"{folder}/offset", "zip", folder / "second")
        env.add_python_file(f"{folder}/modules")
        env.add_python_archive(f"{folder}/py_model.zip", "model")
        env.add_python_archive(f"{folder}/offset.zip")
        with (
            env.from_collection([1, 2, 3, 14], Types.INT())
            .map(Model(), Types.INT())
            .execute_and_collect() as results
        ):
            return list(results)
