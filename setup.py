"""Builds the native modules: implementations in _native/, their contracts in flinkcore/_native/."""

import multiprocessing
import os
import re
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

MODULES = (
    "accumulator_state",
    "aggregates",
    "array_pool",
    "arrow",
    "avro_columns",
    "binary_rows",
    "call_guard",
    "changing_join",
    "changing_rows",
    "changing_top",
    "checksums",
    "column_values",
    "count_windows",
    "counted_values",
    "csv_tokens",
    "deduplication",
    "element_calls",
    "event_log",
    "exchange",
    "frames",
    "interval_join",
    "join_kernel",
    "json_lines",
    "kept_values",
    "key_dictionary",
    "key_expiry",
    "key_groups",
    "key_limits",
    "key_lists",
    "key_timers",
    "keys",
    "lateness",
    "memory",
    "ordered_rows",
    "packed_steps",
    "panes",
    "pattern_matching",
    "pending_rows",
    "regular_join",
    "relational",
    "row_places",
    "running_aggregates",
    "session_windows",
    "state_columns",
    "state_entries",
    "temporal_join",
    "text_parts",
    "time_summary",
    "time_windows",
    "timeline",
    "timer_queue",
    "timers",
    "top_rows",
    "triggered_windows",
    "valve",
    "watermark_generator",
    "window_calendar",
    "window_join",
    "window_operator",
)

SHARED = "_cyutility"
"""The module with what Cython would put into each one that takes arrays: half of their code and their compilation."""

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "auto_pickle": False,
    "autotestdict": False,
    "embedsignature": True,
    "embedsignature.format": "python",
    "binding": True,
}

# FLINKCORE_SANITIZE=1 builds with AddressSanitizer and UndefinedBehaviorSanitizer and turns Cython's checks on.
SANITIZE = os.environ.get("FLINKCORE_SANITIZE") == "1"
if SANITIZE:
    DIRECTIVES |= {"boundscheck": True, "initializedcheck": True}
    COMPILE_ARGS = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
    LINK_ARGS = ["-fsanitize=address,undefined"]
else:
    # Without debug information and symbols a wheel has a third of the size. Overflow of signed integers is to wrap,
    # and a product is rounded before it is added: results have the same bits on every processor.
    COMPILE_ARGS = ["-O3", "-g0", "-fwrapv", "-fno-math-errno", "-ffp-contract=off"]
    LINK_ARGS = []

CONTRACTS = Path("flinkcore/_native")
CIMPORT = re.compile(r"^from flinkcore\._native\.(\w+) cimport", re.MULTILINE)


def contracts_of(name: str) -> list[Path]:
    """Every .pxd that a module is compiled with: its own, those that it cimports, and those that they cimport."""
    found: set[str] = set()
    left = {name, *CIMPORT.findall(Path(f"_native/{name}.pyx").read_text())}
    while left:
        found |= left
        contracts = (CONTRACTS / f"{each}.pxd" for each in left)
        left = {
            cited for path in contracts if path.exists() for cited in CIMPORT.findall(path.read_text())
        } - found
    return sorted(path for each in found if (path := CONTRACTS / f"{each}.pxd").exists())


def is_stale(extension: Extension) -> bool:
    """Whether a contract is newer than the C file: Cython does not track a .pxd that lies apart from its .pyx."""
    generated = Path("build/cython", extension.sources[0]).with_suffix(".c")
    if SANITIZE or not generated.exists():
        return True
    return any(os.path.getmtime(contract) > generated.stat().st_mtime for contract in extension.depends)


# The largest first: two processes that compile end at about the same time.
LARGEST_FIRST = sorted(MODULES, key=lambda name: -os.path.getsize(f"_native/{name}.pyx"))
SOURCES = {name: f"_native/{name}.pyx" for name in LARGEST_FIRST} | {SHARED: f"_native/{SHARED}.c"}
EXTENSIONS = [
    Extension(
        f"flinkcore._native.{name}",
        [source],
        depends=[] if name == SHARED else [str(contract) for contract in contracts_of(name)],
        extra_compile_args=COMPILE_ARGS,
        extra_link_args=LINK_ARGS,
    )
    for name, source in SOURCES.items()
]

# Processes that are not forked would run this file again.
PROCESSES = (os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0


def translate(extensions: list[Extension]) -> None:
    """Give extensions their sources in C, which are made anew where a source or a contract is newer."""
    stale = [extension for extension in extensions if is_stale(extension)]
    fresh = [extension for extension in extensions if extension not in stale]
    settings = {
        "build_dir": "build/cython",
        "compiler_directives": DIRECTIVES,
        "nthreads": PROCESSES,
        "shared_utility_qualified_name": f"flinkcore._native.{SHARED}",
    }
    made = cythonize(stale, force=True, **settings) + cythonize(fresh, **settings)
    for extension, in_c in zip(stale + fresh, made, strict=True):
        extension.sources = in_c.sources


class BuildExtensions(build_ext):
    """Translates what it builds, so that metadata and source distributions are made at once.

    Leaves no module in the source tree whose source is gone: it could still be imported, and would be packed. An
    editable installation takes the modules that are compiled already, instead of compiling all in a temporary folder.
    """

    def run(self) -> None:
        translate(self.extensions or [])
        if self.editable_mode:
            self.build_lib = f"build/lib.{self.plat_name}-{sys.implementation.cache_tag}"
        super().run()
        if self.inplace:
            for module in (*CONTRACTS.glob("*.so"), *CONTRACTS.glob("*.pyd")):
                if module.name.partition(".")[0] not in SOURCES:
                    module.unlink()


setup(
    packages=find_packages(include=["flinkcore", "flinkcore.*"]),
    package_dir={"": "."},
    package_data={"": ["py.typed", "*.pyi", "*.pxd", "*.json", "*.parquet", "*.csv", "*.ipynb", "*.java"]},
    ext_modules=EXTENSIONS,
    cmdclass={"build_ext": BuildExtensions},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    zip_safe=False,
)
