"""Encrypted Parquet files, whose keys nobody has who only reads the file."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class Keys(pe.KmsClient):  # type: ignore[misc]
    """Wraps keys by writing the master key in front of them."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self._masters = config.custom_kms_conf

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(self._masters[master_key_identifier].encode() + key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)[16:]


def write_encrypted(path: Path, table: pa.Table, columns: Sequence[str], plaintext_footer: bool) -> None:
    """Write a table with some columns encrypted, and with the footer unless it is to be plain text."""
    config = pe.EncryptionConfiguration(
        footer_key="footer",
        column_keys={"column": list(columns)},
        plaintext_footer=plaintext_footer,
        double_wrapping=False,
    )
    connection = pe.KmsConnectionConfig(custom_kms_conf={"footer": 16 * "f", "column": 16 * "c"})
    properties = pe.CryptoFactory(Keys).file_encryption_properties(connection, config)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
