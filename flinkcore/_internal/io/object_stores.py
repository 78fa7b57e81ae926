"""The file systems of object stores, with settings by their names in Hadoop, or those of the environment."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from pyarrow import fs

HadoopSetting: TypeAlias = Callable[[str], str | None]
"""Returns a setting by its name in Hadoop; None if it is not set."""

_CONNECT_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 60
_AWS_HOST: Final = re.compile(r"s3(?:[.-](?P<region>[a-z]+(?:-[a-z]+)+-\d))?\.amazonaws\.com(?:\.cn)?")


def not_set(name: str) -> str | None:
    """Return that a setting of Hadoop is not set, as where there is no Spark session."""
    return None


def s3_settings(bucket: str, setting: HadoopSetting) -> dict[str, Any]:
    """Return the settings of a bucket by the names that `pyarrow.fs.S3FileSystem` has for them.

    A setting of the bucket (``fs.s3a.bucket.NAME.endpoint``) comes before that of all (``fs.s3a.endpoint``), and that
    before the environment. What none of them sets is left out, and AWS's own chain of credentials applies.
    """

    def of(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}") or None

    found: dict[str, Any] = {}
    access, secret, token = of("access.key"), of("secret.key"), of("session.token")
    provider = of("aws.credentials.provider") or ""
    if access and secret:
        found |= {"access_key": access, "secret_key": secret, **({"session_token": token} if token else {})}
    elif "AnonymousAWSCredentialsProvider" in provider and "," not in provider:
        found["anonymous"] = True
    elif "AssumedRoleCredentialProvider" in provider and of("assumed.role.arn"):
        found["role_arn"] = of("assumed.role.arn")
        found["session_name"] = of("assumed.role.session.name") or "flinkcore"
    from_session = of("endpoint")
    endpoint = from_session or _environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = of("endpoint.region")
    region = None if region in ("sdk", "ec2") else region
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        aws = _AWS_HOST.fullmatch(host.rstrip("/"))
        if aws:
            region = region or aws["region"]
        else:
            found["endpoint_override"] = host.rstrip("/")
            is_plain = (of("connection.ssl.enabled") or "").lower() == "false"
            found["scheme"] = scheme or ("http" if is_plain else "https")
            by_host = (of("path.style.access") or "true").lower() == "false"
            if from_session and by_host and not _is_address(host):
                found["force_virtual_addressing"] = True
            region = region or _environment("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    if region:
        found["region"] = region
    return found


def s3_file_system(location: str, scheme: str, bucket: str, setting: HadoopSetting) -> Any:
    """Return the file system of a bucket of S3, or of a store that speaks its protocol.

    Raises
    ------
    OSError
        If the region of the bucket is asked for, and cannot be found.
    """
    options = s3_settings(bucket, setting)
    if "region" not in options:
        try:
            options["region"] = fs.resolve_s3_region(bucket)
        except OSError:
            region = _environment("AWS_REGION", "AWS_DEFAULT_REGION")
            if region is None:
                raise
            options["region"] = region
    return fs.S3FileSystem(connect_timeout=_CONNECT_SECONDS, **options)


def deltalake_options(location: str, setting: HadoopSetting) -> dict[str, str]:
    """Return the settings of a location by the names that deltalake has for them; it reads the environment itself."""
    uri = urlsplit(location)
    if uri.scheme in ("s3", "s3a", "s3n"):
        options = s3_settings(uri.netloc, setting)
        return _renamed(
            options,
            {
                "access_key": "aws_access_key_id",
                "secret_key": "aws_secret_access_key",
                "session_token": "aws_session_token",
                "region": "aws_region",
            },
        ) | _of_s3_endpoint(options)
    if uri.scheme in ("abfs", "abfss", "wasb", "wasbs"):
        names = {"account_key": "azure_storage_account_key", "sas_token": "azure_storage_sas_token"}
        names |= {each: f"azure_storage_{each}" for each in ("tenant_id", "client_id", "client_secret")}
        return _renamed(azure_settings(uri.netloc, setting), names)
    if uri.scheme in ("gs", "gcs"):
        key_file = _gcs_key_file(setting)
        return {} if key_file is None else {"google_service_account": key_file}
    return {}


def pyiceberg_properties(location: str, setting: HadoopSetting) -> dict[str, str]:
    """Return the settings of a location by the names that pyiceberg has for them."""
    uri = urlsplit(location)
    if uri.scheme not in ("s3", "s3a", "s3n"):
        return {}
    options = s3_settings(uri.netloc, setting)
    found = _renamed(
        options,
        {
            "access_key": "s3.access-key-id",
            "secret_key": "s3.secret-access-key",
            "session_token": "s3.session-token",
            "region": "s3.region",
        },
    )
    if "endpoint_override" in options:
        found["s3.endpoint"] = f"{options['scheme']}://{options['endpoint_override']}"
    return found


def _of_s3_endpoint(options: Mapping[str, Any]) -> dict[str, str]:
    found = {"aws_skip_signature": "true"} if options.get("anonymous") else {}
    if "endpoint_override" in options:
        found["aws_endpoint_url"] = f"{options['scheme']}://{options['endpoint_override']}"
        if options["scheme"] == "http":
            found["aws_allow_http"] = "true"
        if options.get("force_virtual_addressing"):
            found["aws_virtual_hosted_style_request"] = "true"
    return found


def _renamed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    return {name: options[own] for own, name in names.items() if own in options}


def gcs_file_system(location: str, scheme: str, bucket: str, setting: HadoopSetting) -> Any:
    """Return the file system of Google Cloud Storage: Arrow's, or that of gcsfs where a key file is named in Hadoop."""
    key_file = _gcs_key_file(setting)
    if key_file is not None:
        return fsspec_file_system(location, "gs", bucket, setting, token=key_file)
    options: dict[str, Any] = {"retry_time_limit": timedelta(seconds=_RETRY_SECONDS)}
    if (setting("fs.gs.auth.type") or "").upper() == "UNAUTHENTICATED":
        options["anonymous"] = True
    endpoint = setting("fs.gs.storage.root.url") or _environment("STORAGE_EMULATOR_HOST")
    if endpoint and "googleapis.com" not in endpoint:
        protocol, _, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": protocol or "http"}
    return fs.GcsFileSystem(**options)


def _gcs_key_file(setting: HadoopSetting) -> str | None:
    return (
        setting("fs.gs.auth.service.account.json.keyfile")
        or setting("google.cloud.auth.service.account.json.keyfile")
        or None
    )


def azure_settings(authority: str, setting: HadoopSetting) -> dict[str, Any]:
    """Return the settings of ``CONTAINER@ACCOUNT.dfs...`` by the names that `pyarrow.fs.AzureFileSystem` has.

    Raises
    ------
    ValueError
        If the authority names no account.
    """
    container, at, host = authority.partition("@")
    account, _, domain = host.partition(".")
    if not at:
        account, domain = _environment("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT") or "", ""
    if not account:
        raise ValueError("the URI names no account")

    def of(name: str) -> str | None:
        names = (f"{name}.{container}.{host}", f"{name}.{host}", name)
        return next(filter(None, map(setting, names)), None)

    found: dict[str, Any] = {"account_name": account}
    zone = domain.partition(".")[2]
    if zone and zone != "core.windows.net":
        found |= {"dfs_storage_authority": f".dfs.{zone}", "blob_storage_authority": f".blob.{zone}"}
    key = of("fs.azure.account.key") or _environment("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY")
    token = of("fs.azure.sas.fixed.token") or _environment("AZURE_STORAGE_SAS_TOKEN")
    client = of("fs.azure.account.oauth2.client.id"), of("fs.azure.account.oauth2.client.secret")
    tenant = re.match(r"https://[^/]+/([^/]+)/", of("fs.azure.account.oauth2.client.endpoint") or "")
    if all(client) and tenant:
        found |= {"client_id": client[0], "client_secret": client[1], "tenant_id": tenant[1]}
    elif key:
        found["account_key"] = key
    elif token:
        found["sas_token"] = token
    return found


def azure_file_system(location: str, scheme: str, authority: str, setting: HadoopSetting) -> Any:
    """Return the file system of an Azure storage account: Arrow's, or that of adlfs where Arrow is built without it."""
    options = azure_settings(authority, setting)
    with suppress(ImportError, AttributeError, TypeError):  # TypeError: an older Arrow has not all settings
        return fs.AzureFileSystem(**options)
    options = {name: value for name, value in options.items() if not name.endswith("_authority")}
    return fsspec_file_system(location, "abfs", authority, setting, **options)


def hdfs_file_system(location: str, scheme: str, authority: str, setting: HadoopSetting) -> Any:
    """Return the file system of a cluster of HDFS, by default that of ``fs.defaultFS``; Arrow needs libhdfs for it."""
    host = f"{scheme}://{authority}" if authority else setting("fs.defaultFS") or "default"
    uri = urlsplit(host)
    if uri.scheme not in ("hdfs", "viewfs"):
        return fs.HadoopFileSystem("default")
    port = uri.port or (8020 if uri.scheme == "hdfs" and "." in (uri.hostname or "") else 0)
    return fs.HadoopFileSystem(f"{uri.scheme}://{uri.hostname}", port, user=uri.username)


def fsspec_file_system(
    location: str, scheme: str, authority: str, setting: HadoopSetting, **options: Any
) -> Any:
    """Return the file system that fsspec has for a scheme, as one of Arrow.

    Raises
    ------
    ImportError
        If fsspec, or the library that it needs for the scheme, is not installed.
    ValueError
        If fsspec has no file system for the scheme.
    """
    try:
        import fsspec
    except ImportError:
        raise ImportError(
            f"Arrow knows no scheme {scheme}, and fsspec is not installed: pip install 'flinkcore[fsspec]'"
        ) from None
    kind = fsspec.get_filesystem_class(scheme)
    options = (kind._get_kwargs_from_urls(location) if authority else {}) | options
    return fs.PyFileSystem(fs.FSSpecHandler(kind(**options)))


def _environment(*names: str) -> str | None:
    return next(filter(None, map(os.environ.get, names)), None)


def _is_address(host: str) -> bool:
    """Return whether a host with its port is this machine or an IP address, which has no names of buckets."""
    name = host.rsplit(":", 1)[0].strip("[]")
    if name == "localhost":
        return True
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False
