"""Builds the native modules: implementations in _native/, their contracts in flinkcore/_native/."""

import multiprocessing
import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

MODULES = (
    "accumulator_state",
    "aggregate_functions",
    "aggregate_results",
    "aggregate_specs",
    "aggregates",
    "aligned_windows",
    "arrow",
    "batch_cuts",
    "byte_values",
    "column_blocks",
    "count_firings",
    "count_windows",
    "current_key",
    "distinct_sets",
    "entry_lists",
    "event_clock",
    "exchange",
    "firings",
    "hash_order",
    "integer_codes",
    "java_hash_codes",
    "key_dictionary",
    "key_groups",
    "key_layout",
    "key_timers",
    "keys",
    "memory",
    "memory_blocks",
    "narrow_integers",
    "pane_firings",
    "pane_timers",
    "panes",
    "result_columns",
    "row_blocks",
    "session_firings",
    "session_state",
    "session_timers",
    "session_windows",
    "sessions",
    "shared_accumulators",
    "slice_merge",
    "sliced_count_windows",
    "sliced_windows",
    "split_alignment",
    "split_merge_state",
    "split_operators",
    "split_positions",
    "split_records",
    "timeline",
    "timer_batches",
    "timer_columns",
    "timer_order",
    "timer_queue",
    "timers",
    "triggered_firings",
    "triggered_windows",
    "value_lists",
    "valve",
    "watermarks",
    "window_kernel",
    "window_operator",
    "window_triggers",
    "windows",
)

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
    COMPILE_ARGS = ["-O3", "-fno-math-errno"]
    LINK_ARGS = []

CONTRACTS = sorted(str(path) for path in Path("flinkcore/_native").glob("*.pxd"))


def contracts_are_newer() -> bool:
    """Cython does not track a .pxd that lies apart from its .pyx; a stale C file breaks at import."""
    generated = [Path("build/cython/_native", f"{name}.c") for name in MODULES]
    if not all(path.exists() for path in generated):
        return True
    return max(os.path.getmtime(path) for path in CONTRACTS) > min(path.stat().st_mtime for path in generated)


# Processes that are not forked would run this file again.
PROCESSES = (os.cpu_count() or 1) if multiprocessing.get_start_method() == "fork" else 0


setup(
    packages=find_packages(include=["flinkcore", "flinkcore.*"]),
    package_dir={"": "."},
    package_data={"": ["py.typed", "*.pyi", "*.pxd", "*.parquet", "*.csv"]},
    ext_modules=cythonize(
        [
            Extension(
                f"flinkcore._native.{name}",
                [f"_native/{name}.pyx"],
                depends=CONTRACTS,
                extra_compile_args=COMPILE_ARGS,
                extra_link_args=LINK_ARGS,
            )
            for name in MODULES
        ],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        force=SANITIZE or contracts_are_newer(),
        nthreads=PROCESSES,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    zip_safe=False,
)
