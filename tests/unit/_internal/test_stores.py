"""Which library reads a location, and with which settings."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from threading import Barrier, Lock
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from flinkcore._internal.io.locations import absolute_location, is_local, shown_location
from flinkcore._internal.io.object_stores import (
    HadoopSetting,
    azure_settings,
    deltalake_options,
    pyiceberg_properties,
    s3_settings,
)
from flinkcore._internal.io.store_errors import reason_of
from flinkcore._internal.io.stores import (
    ENVIRONMENT,
    GivenFileSystem,
    Place,
    Stores,
    folders_of,
    looked_at,
    stores_of,
)
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.log.files.log_files import discover_files

SECRET = "a-secret-that-nobody-may-read"


class OfHadoop(Stores):
    """Stores with settings of Hadoop, as a session has them."""

    def __init__(self, **settings: str) -> None:
        self._settings = {
            name.replace("__", "-").replace("_", "."): value for name, value in settings.items()
        }

    def hadoop_setting(self) -> HadoopSetting:
        return self._settings.get


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "DATABRICKS_", "STORAGE_")):
            monkeypatch.delenv(name)


def options_of(place: Place) -> dict[str, Any]:
    """The options that a worker's file system has, too: those that are pickled."""
    options: dict[str, Any] = place.filesystem.__reduce__()[1][0]
    return options


S3 = {
    "fs.s3a.access.key": "one",
    "fs.s3a.secret.key": SECRET,
    "fs.s3a.endpoint": "https://minio.example.com:9000",
    "fs.s3a.path.style.access": "true",
    "fs.s3a.endpoint.region": "eu-central-1",
    "fs.s3a.session.token": "token",
    "fs.s3a.bucket.other.access.key": "two",
    "fs.s3a.bucket.other.endpoint": "http://127.0.0.1:9000",
}


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("~/logs", f"{Path.home()}/logs"),
        ("file:/data/a b", "/data/a b"),
        ("file:///data/a%20b/", "/data/a b"),
        ("file://localhost/data", "/data"),
        ("/data/*.parquet", "/data/*.parquet"),
        ("/data/x:/y", "/data/x:/y"),
    ],
)
def test_a_path_of_this_machine_is_local_however_it_is_written(location: str, path: str) -> None:
    place = ENVIRONMENT.locate(location)
    assert isinstance(place.filesystem, fs.LocalFileSystem)
    assert (place.path, place.name) == (path, path)
    assert is_local(location)


def test_a_file_uri_of_another_machine_is_refused() -> None:
    with pytest.raises(SourceError, match=r"on the machine 'host'. Write file:///PATH"):
        absolute_location("file://host/data")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_settings_of_a_session_make_the_file_system_of_s3(scheme: str) -> None:
    place = OfHadoop(**{name.replace(".", "_"): value for name, value in S3.items()}).locate(
        f"{scheme}://logs/clicks/day=1/"
    )
    options = options_of(place)
    assert (place.path, place.name) == ("logs/clicks/day=1", f"{scheme}://logs/clicks/day=1")
    assert (options["access_key"], options["secret_key"], options["session_token"]) == (
        "one",
        SECRET,
        "token",
    )
    assert (options["scheme"], options["endpoint_override"]) == ("https", "minio.example.com:9000")
    assert (options["region"], options["force_virtual_addressing"]) == ("eu-central-1", False)
    assert pickle.loads(pickle.dumps(place)).filesystem.equals(place.filesystem)
    assert SECRET not in repr(place)


def test_settings_of_a_bucket_come_before_those_of_all() -> None:
    found = s3_settings("other", S3.get)
    assert (found["access_key"], found["endpoint_override"], found["scheme"]) == (
        "two",
        "127.0.0.1:9000",
        "http",
    )
    assert found["secret_key"] == SECRET


def test_buckets_are_addressed_by_host_as_hadoop_does_unless_the_endpoint_is_an_address() -> None:
    given = {"fs.s3a.endpoint": "store.example.com", "fs.s3a.path.style.access": "false"}
    assert s3_settings("logs", given.get)["force_virtual_addressing"]
    for endpoint in ("localhost:9000", "127.0.0.1", "[::1]:9000"):
        assert "force_virtual_addressing" not in s3_settings(
            "logs", (given | {"fs.s3a.endpoint": endpoint}).get
        )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"}, {"region": "eu-west-1"}),
        (
            {"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "us-west-2"},
            {"region": "us-west-2"},
        ),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {}),
        (
            {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint_override": "minio:9000", "scheme": "http", "region": "us-east-1"},
        ),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
        ),
        (
            {
                "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider",
                "fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/reader",
            },
            {"role_arn": "arn:aws:iam::1:role/reader", "session_name": "flinkcore"},
        ),
        ({}, {}),
    ],
)
def test_further_settings_of_s3_mean_what_they_mean_in_hadoop(
    settings: dict[str, str], expected: dict[str, Any]
) -> None:
    assert s3_settings("logs", settings.get) == expected


def test_without_a_session_the_environment_names_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    options = options_of(ENVIRONMENT.locate("s3a://logs/clicks"))
    assert (options["scheme"], options["endpoint_override"]) == ("http", "localhost:9000")
    assert (options["region"], options["access_key"]) == ("eu-north-1", None)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example.com")
    assert options_of(ENVIRONMENT.locate("s3a://logs/clicks"))["endpoint_override"] == "s3.example.com"


def test_a_setting_of_the_session_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    assert s3_settings("logs", S3.get)["endpoint_override"] == "minio.example.com:9000"


def test_libraries_of_tables_get_the_same_settings() -> None:
    settings = S3 | {"fs.s3a.endpoint": "http://minio:9000"}
    assert deltalake_options("s3a://logs/clicks", settings.get) == {
        "aws_access_key_id": "one",
        "aws_secret_access_key": SECRET,
        "aws_session_token": "token",
        "aws_region": "eu-central-1",
        "aws_endpoint_url": "http://minio:9000",
        "aws_allow_http": "true",
    }
    assert pyiceberg_properties("s3://logs/clicks", settings.get) == {
        "s3.access-key-id": "one",
        "s3.secret-access-key": SECRET,
        "s3.session-token": "token",
        "s3.region": "eu-central-1",
        "s3.endpoint": "http://minio:9000",
    }
    assert deltalake_options("/logs/clicks", settings.get) == {}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fs.azure.account.key.acc.dfs.core.windows.net": SECRET}, {"account_key": SECRET}),
        ({"fs.azure.sas.fixed.token.logs.acc.dfs.core.windows.net": SECRET}, {"sas_token": SECRET}),
        (
            {
                "fs.azure.account.oauth2.client.id": "me",
                "fs.azure.account.oauth2.client.secret": SECRET,
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
            },
            {"client_id": "me", "client_secret": SECRET, "tenant_id": "tenant"},
        ),
        ({}, {}),
    ],
)
def test_settings_of_a_session_make_the_file_system_of_azure(
    settings: dict[str, str], expected: dict[str, str]
) -> None:
    found = azure_settings("logs@acc.dfs.core.windows.net", settings.get)
    assert found == {"account_name": "acc", **expected}


def test_a_container_of_azure_is_the_first_folder_of_its_account() -> None:
    place = OfHadoop(fs_azure_account_key="a2V5").locate("abfss://logs@acc.dfs.core.windows.net/a/b")
    assert place.path == "logs/a/b"
    assert place.name == "abfss://logs@acc.dfs.core.windows.net/a/b"
    assert place.name_of("logs/a/c") == "abfss://logs@acc.dfs.core.windows.net/a/c"
    assert place.filesystem.type_name == "abfs"


def test_a_uri_of_azure_without_an_account_is_an_error() -> None:
    with pytest.raises(
        SourceError, match=r"abfss://logs/a cannot be reached: .* names no account.*CONTAINER@ACCOUNT"
    ):
        ENVIRONMENT.locate("abfss://logs/a")


def test_google_storage_is_read_by_arrow() -> None:
    place = OfHadoop(fs_gs_auth_type="UNAUTHENTICATED").locate("gs://logs/clicks")
    assert (place.filesystem.type_name, place.path, place.name) == ("gcs", "logs/clicks", "gs://logs/clicks")
    assert not place.renames


def test_databricks_files_are_read_where_they_are_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    monkeypatch.setattr("flinkcore._internal.io.stores._DBFS_MOUNT", str(tmp_path))
    place = ENVIRONMENT.locate("dbfs:/logs/clicks")
    assert (place.path, place.name) == (f"{tmp_path}/logs/clicks", "dbfs:/logs/clicks")
    assert isinstance(place.filesystem, fs.LocalFileSystem)


def test_databricks_files_elsewhere_need_an_address() -> None:
    with pytest.raises(SourceError, match=r"dbfs:/logs cannot be reached: .*Set DATABRICKS_HOST"):
        ENVIRONMENT.locate("dbfs:/logs")


def test_other_schemes_are_those_of_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/logs/a.csv", b"ts\n1\n")
    try:
        place = ENVIRONMENT.locate("memory://logs/a.csv")
        with place.filesystem.open_input_stream(place.path) as file:
            assert file.read() == b"ts\n1\n"
    finally:
        memory.rm("/logs", recursive=True)


def test_a_scheme_that_nobody_reads_is_an_error() -> None:
    with pytest.raises(
        SourceError, match=r"nowhere://logs cannot be reached: .*nowhere.* or give filesystem="
    ):
        ENVIRONMENT.locate("nowhere://logs")


def test_a_file_system_that_is_given_has_all_locations() -> None:
    given = fs.SubTreeFileSystem("/data", fs.LocalFileSystem())
    assert stores_of(given).locate("logs/a").path == "logs/a"
    assert stores_of(given).locate("s3://logs/a").path == "logs/a"
    assert isinstance(stores_of(given), GivenFileSystem)
    assert stores_of(None) is ENVIRONMENT
    with pytest.raises(ConfigurationError, match="not str"):
        stores_of("s3")


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (f"s3://key:{SECRET}@logs/a?region=eu-west-1", "s3://logs/a"),
        (f"s3://key:{SECRET}@logs/a?.parquet", "s3://logs/a?.parquet"),
        ("abfss://logs@acc.dfs.core.windows.net/a", "abfss://logs@acc.dfs.core.windows.net/a"),
        ("/data/a?b=c", "/data/a?b=c"),
    ],
)
def test_a_location_is_shown_without_its_secrets(location: str, shown: str) -> None:
    assert shown_location(location) == shown


def test_a_uri_may_have_settings_of_its_own() -> None:
    uri = f"s3://key:{SECRET}@logs/a?region=eu-west-1&endpoint_override=localhost:9000&scheme=http"
    place = ENVIRONMENT.locate(uri)
    options = options_of(place)
    assert (options["access_key"], options["secret_key"]) == ("key", SECRET)
    assert (options["endpoint_override"], options["region"]) == ("localhost:9000", "eu-west-1")
    assert place.name == "s3://logs/a"


def test_names_of_one_directory_are_equal_whichever_scheme_they_have(tmp_path: Path) -> None:
    assert folders_of("s3a://logs/a/") == folders_of("s3://logs/a") == folders_of(f"s3n://k:{SECRET}@logs/a")
    assert folders_of(f"file:{tmp_path}") == folders_of(tmp_path.as_posix())
    assert folders_of("gs://logs/a") != folders_of("s3://logs/a")


def test_files_are_moved_wherever_they_are(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    ENVIRONMENT.locate(tmp_path).move({"a": "x", "b": "y"})
    assert [(tmp_path / name).read_text() for name in "xy"] == ["a", "b"]


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (
            "AWS Error ACCESS_DENIED during HeadObject operation: No response body.",
            "fs.s3a.access.key.*AWS_ACCESS",
        ),
        ("AWS Error NETWORK_CONNECTION during X operation: curlCode: 7", "fs.s3a.endpoint.*AWS_ENDPOINT_URL"),
        ("AWS Error UNKNOWN (HTTP status 301) during HeadObject", "fs.s3a.endpoint.region.*AWS_REGION"),
        ("AWS Error NO_SUCH_BUCKET during X operation: none", "name of the bucket"),
        (
            "When getting information for key 'a' in bucket 'lakee': AWS Error NO_SUCH_BUCKET during X: none",
            "There is no bucket 'lakee'. Check the name of the bucket",
        ),
        ("Bucket 'logs' not found. To create buckets, enable", "name of the bucket"),
        ("google::cloud::Status(PERMISSION_DENIED: Permanent error", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("google::cloud::Status(UNAVAILABLE: Retry policy exhausted", "the network"),
        ("Check for X failed. Azure Error: [AuthenticationFailed] 403 Forbidden", "fs.azure.account.key"),
        ("Azure Error: [] Fail to get a new connection for: http://127.0.0.1:1", "the account in the URI"),
        ("No space left on device", "device$"),
    ],
)
def test_an_error_of_a_store_says_which_setting_to_check(error: str, remedy: str) -> None:
    text = reason_of(OSError(error))
    assert text.startswith(error.rstrip("."))
    assert re.search(remedy, text)


@pytest.mark.parametrize("name", ["nowhere", "*.parquet", "empty"])
def test_an_error_about_a_location_carries_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError) as failure:
        discover_files(tmp_path / name)
    assert failure.value.file == str(tmp_path / name)


def test_an_error_about_a_location_in_no_known_store_carries_it() -> None:
    with pytest.raises(SourceError) as failure:
        ENVIRONMENT.locate("nowhere://bucket/log")
    assert failure.value.file == "nowhere://bucket/log"


def test_an_error_about_files_of_a_table_carries_the_table(tmp_path: Path) -> None:
    (tmp_path / "clicks" / "_delta_log").mkdir(parents=True)
    (tmp_path / "clicks" / "_delta_log" / f"{0:020}.json").write_text("{}")
    (tmp_path / "clicks" / "1.parquet").write_bytes(b"")
    with pytest.raises(SourceError, match="lies in a Delta table") as failure:
        discover_files(tmp_path / "clicks" / "1.parquet")
    assert failure.value.file == str(tmp_path / "clicks")


@pytest.mark.parametrize("kind", ["s3", "local"])
def test_paths_of_a_store_are_looked_at_at_once_and_those_of_a_disk_in_turn(kind: str) -> None:
    running, most, lock = 0, 0, Lock()
    meeting = Barrier(3, timeout=20)

    def look(path: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        if kind == "s3":
            meeting.wait()  # three looks must run at once for this to return
        with lock:
            running -= 1
        return path.upper()

    found = looked_at(SimpleNamespace(type_name=kind), list("abcdef"), look, at_once=3)
    assert found == list("ABCDEF")
    assert most == (3 if kind == "s3" else 1)


def test_an_error_of_a_look_is_raised() -> None:
    def look(path: str) -> None:
        raise OSError(path)

    with pytest.raises(OSError, match=r"^a$"):
        looked_at(SimpleNamespace(type_name="s3"), ["a", "b"], look)


def test_settings_are_asked_for_once_and_only_where_a_location_has_any(tmp_path: Path) -> None:
    asked = []

    class Counting(OfHadoop):
        def hadoop_setting(self) -> HadoopSetting:
            asked.append(self)
            return super().hadoop_setting()

    locate = Counting(**S3).locating()
    assert locate(str(tmp_path)).path == str(tmp_path)
    assert asked == []
    assert options_of(locate("s3a://one/a"))["access_key"] == "one"
    assert options_of(locate("s3a://other/b"))["access_key"] == "two"
    assert len(asked) == 1
