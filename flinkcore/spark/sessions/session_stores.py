"""Object stores with the settings that a Spark session has for Hadoop's file systems."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from flinkcore._internal.io.object_stores import HadoopSetting
from flinkcore._internal.io.stores import Stores
from flinkcore.spark.sessions.session import is_classic, setting

_KEY_STORES = "hadoop.security.credential.provider.path"


class SessionStores(Stores):
    """The file systems of locations, with the settings of a Spark session, and then those of the environment.

    Settings are asked for by name when a location is used, so that later changes of the session count. Executors get
    the file systems that the driver makes of them.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def hadoop_setting(self) -> HadoopSetting:
        configuration = self._configuration()
        if configuration is None:
            return self._setting_of_session

        def of_hadoop(name: str) -> str | None:
            value: str | None = configuration.get(name)
            if value is None and configuration.get(_KEY_STORES):
                secret = configuration.getPassword(name)
                value = None if secret is None else "".join(secret)
            return value

        return of_hadoop

    def _configuration(self) -> Any:
        """Return Hadoop's configuration as the session's own reads have it; None where the session does not show it."""
        if is_classic(self._spark):
            with suppress(Exception):  # platforms forbid some of it
                return self._spark._jsparkSession.sessionState().newHadoopConf()
            with suppress(Exception):
                return self._spark.sparkContext._jsc.hadoopConfiguration()
        return None

    def _setting_of_session(self, name: str) -> str | None:
        return setting(self._spark, name) or setting(self._spark, f"spark.hadoop.{name}")
