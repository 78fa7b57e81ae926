"""The time characteristic and the auto-watermark interval that it sets, as in Flink 1.20."""

import pytest

from flinkcore.datastream import StreamExecutionEnvironment, TimeCharacteristic
from flinkcore.errors import ConfigurationError


@pytest.mark.parametrize(
    ("characteristic", "interval"),
    [
        (TimeCharacteristic.ProcessingTime, 0),
        (TimeCharacteristic.IngestionTime, 200),
        (TimeCharacteristic.EventTime, 200),
    ],
)
def test_each_characteristic_sets_its_interval(characteristic: TimeCharacteristic, interval: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(7)
    env.set_stream_time_characteristic(characteristic)
    assert env.get_stream_time_characteristic() is characteristic
    assert env.get_config().get_auto_watermark_interval() == interval
    env.get_config().set_auto_watermark_interval(7)
    assert env.get_config().get_auto_watermark_interval() == 7


def test_event_time_is_the_default() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_stream_time_characteristic() is TimeCharacteristic.EventTime
    assert env.get_config().get_auto_watermark_interval() == 200


def test_the_values_are_pyflinks() -> None:
    assert [(each.name, each.value) for each in TimeCharacteristic] == [
        ("ProcessingTime", 0),
        ("IngestionTime", 1),
        ("EventTime", 2),
    ]


def test_another_value_is_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(ConfigurationError, match="not 'event'"):
        env.set_stream_time_characteristic("event")  # type: ignore[arg-type]
