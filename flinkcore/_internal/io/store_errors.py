"""Errors of object stores, as Arrow reports them, and what to do about them."""

from __future__ import annotations

import re
from typing import Final

_S3_REGION: Final = "the region: fs.s3a.endpoint.region of the Spark session, or AWS_REGION"
_S3_KEYS: Final = (
    "Check the credentials: fs.s3a.access.key, fs.s3a.secret.key and fs.s3a.session.token of the Spark session, or "
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and what they may do with the bucket"
)
_S3_ENDPOINT: Final = (
    "Check the endpoint, fs.s3a.endpoint of the Spark session or AWS_ENDPOINT_URL, and the network; each request was "
    "tried three times"
)
_CHECK_BUCKET: Final = "Check the name of the bucket and the endpoint, fs.s3a.endpoint or AWS_ENDPOINT_URL"
_MISSING_BUCKET: Final = re.compile(
    r"in bucket '(?P<before>[^']+)'.*AWS Error NO_SUCH_BUCKET|Bucket '(?P<after>[^']+)' not found", re.DOTALL
)
_GCS_KEYS: Final = (
    "Check the credentials: fs.gs.auth.service.account.json.keyfile of the Spark session, or "
    "GOOGLE_APPLICATION_CREDENTIALS, and what they may do with the bucket"
)
_AZURE_KEYS: Final = (
    "Check the credentials: fs.azure.account.key, fs.azure.sas.fixed.token or fs.azure.account.oauth2.client.* of the "
    "Spark session, or AZURE_STORAGE_ACCOUNT_KEY and AZURE_STORAGE_SAS_TOKEN, and what they may do with the container"
)
_REMEDIES: Final = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        (r"AWS Error [A-Z_]+ \(HTTP status 301\)", f"Check {_S3_REGION}"),
        (r"AWS Error [A-Z_]+ \(HTTP status 400\)", f"{_S3_KEYS}; and {_S3_REGION}"),
        (r"AWS Error [A-Z_]+ \(HTTP status 40[13]\)", _S3_KEYS),
        (
            r"AWS Error (REQUEST_EXPIRED|REQUEST_TIME_TOO_SKEWED)",
            "Check the clock of this machine and the session token",
        ),
        (
            r"AWS Error NO_SUCH_BUCKET|Bucket '[^']+' not found",
            _CHECK_BUCKET,
        ),
        (
            r"AWS Error (NETWORK_CONNECTION|REQUEST_TIMEOUT|SLOW_DOWN|SERVICE_UNAVAIL|INTERNAL_FAIL)",
            _S3_ENDPOINT,
        ),
        (
            r"AWS Error (ACCESS_DENIED|INVALID_|MISSING_AUTH|SIGNATURE_DOES_NOT_MATCH|UNRECOGNIZED_CLIENT)",
            _S3_KEYS,
        ),
        (r"google::cloud::Status\((UNAUTHENTICATED|PERMISSION_DENIED)", _GCS_KEYS),
        (
            r"google::cloud::Status\((UNAVAILABLE|DEADLINE_EXCEEDED)",
            "Check the network; each request was tried for a minute",
        ),
        (r"Azure Error: \[\w*\] (400|401|403)", _AZURE_KEYS),
        (r"Azure Error: \[\] Fail to get a new connection", "Check the account in the URI, and the network"),
    )
)
"""Patterns of what stores answer, as Arrow reports it, and what to do."""


def reason_of(failure: BaseException) -> str:
    """Return the text of a failure on one line, with what to do where a store has failed."""
    reason, remedy = " ".join(str(failure).split()), store_remedy(failure)
    return reason if remedy is None else f"{reason.rstrip('. ')}. {remedy}"


def missing_bucket(name: str) -> str:
    """Return the message about a bucket or container that does not exist."""
    return f"There is no bucket {name!r}. {_CHECK_BUCKET}"


def store_remedy(failure: BaseException) -> str | None:
    """Return what to do where a store has refused a request or was not reached; None for other errors."""
    text = str(failure)
    missing = _MISSING_BUCKET.search(text)
    bucket = None if missing is None else missing["before"] or missing["after"]
    if bucket is not None:
        return missing_bucket(bucket)
    return next((remedy for pattern, remedy in _REMEDIES if pattern.search(text)), None)
