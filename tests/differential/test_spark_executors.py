"""Executors that do not have what replays need."""

import pytest
from models.standalone_cluster import StandaloneCluster, bare_interpreter, site_packages_of

pytest.importorskip("pyspark")

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError
from flinkcore.examples.flights import hourly_flights
from flinkcore.spark import SparkExecutionEnvironment


def test_executors_with_another_build_take_the_drivers(cluster: StandaloneCluster) -> None:
    interpreter = bare_interpreter(cluster.folder / "other")
    package = site_packages_of(interpreter) / "flinkcore"
    package.mkdir()
    (package / "__init__.py").write_text('__version__ = "0.0.1"')

    def version_on_worker(_: int) -> str:
        import flinkcore

        return flinkcore.__version__

    with cluster.session(interpreter) as session:
        from pyspark.sql.functions import udf

        # Workers are used again; one that has imported another build ends, and its task is done again.
        versions = session.range(2).select(udf(version_on_worker, useArrow=False)("id")).collect()
        assert {row[0] for row in versions} == {"0.0.1"}
        found = hourly_flights(SparkExecutionEnvironment(session)).to_arrow()
        assert found.num_rows == hourly_flights(StreamExecutionEnvironment()).to_arrow().num_rows


def test_executors_without_pyarrow_are_one_error_before_the_job(cluster: StandaloneCluster) -> None:
    interpreter = bare_interpreter(cluster.folder / "empty")
    for path in (cluster.folder / "empty" / "packages").glob("pyarrow*"):
        path.unlink()
    with cluster.session(interpreter) as session:
        job = hourly_flights(SparkExecutionEnvironment(session)).execute()
        with pytest.raises(
            ConfigurationError, match=r"empty/bin/python.*needs pyarrow 18 or later and has none"
        ):
            job.to_arrow()


def test_a_worker_with_old_packages_is_refused_by_the_tasks_that_it_runs_too(
    cluster: StandaloneCluster,
) -> None:
    interpreter = bare_interpreter(cluster.folder / "aging")
    with cluster.session(interpreter) as session:
        assert hourly_flights(SparkExecutionEnvironment(session)).to_arrow().num_rows
        # As on an executor that joins after the first job.
        packages = cluster.folder / "aging" / "packages"
        for path in packages.glob("numpy-*.dist-info"):
            path.unlink()
        (packages / "numpy-1.20.0.dist-info").mkdir()
        (packages / "numpy-1.20.0.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 1.20.0\n")
        with pytest.raises(
            ConfigurationError,
            match=r"aging/bin/python.*needs numpy 1\.2\d or later and has 1\.20\.0: install it",
        ):
            hourly_flights(SparkExecutionEnvironment(session)).to_arrow()
