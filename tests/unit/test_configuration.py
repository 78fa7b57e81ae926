"""Settings by keys, and which of them an environment takes."""

import pytest

from flinkcore.common import Configuration
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError


def test_values_are_read_as_what_they_are_asked_for() -> None:
    settings = Configuration().set_string("a", "5").set_boolean("b", True).set_float("c", 2)
    assert settings.get_integer("a", 0) == 5
    assert settings.get_boolean("b", False) is True
    assert settings.get_string("b", "") == "true"
    assert settings.get_float("c", 0.0) == 2.0
    assert settings.get_string("d", "default") == "default"
    assert settings.to_dict() == {"a": "5", "b": "true", "c": "2"}
    with pytest.raises(ConfigurationError, match="the setting b is no int: 'yes'"):
        Configuration.from_dict({"b": "yes"}).get_integer("b", 0)
    with pytest.raises(ConfigurationError, match="is true or false, not 'yes'"):
        Configuration.from_dict({"b": "yes"}).get_boolean("b", False)
    with pytest.raises(ConfigurationError, match="the setting a takes int, not 'x'"):
        Configuration().set_integer("a", "x")  # type: ignore[arg-type]


def test_a_copy_does_not_change_with_its_origin() -> None:
    first = Configuration().set_integer("a", 1)
    second = Configuration(first)
    first.set_integer("a", 2)
    assert second.get_integer("a", 0) == 1
    second.add_all(first, "x.")
    assert second.key_set() == {"a", "x.a"}
    assert second.remove_config("a")
    assert not second.remove_config("a")


def test_an_environment_takes_the_settings_that_have_a_meaning() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration()
        .set_integer("parallelism.default", 3)
        .set_string("pipeline.auto-watermark-interval", "50 ms")
        .set_boolean("pipeline.operator-chaining.enabled", False)
        .set_string("pipeline.global-job-parameters", "city:Berlin,year:2026")
        .set_string("python.execution-mode", "thread")
    )
    assert env.get_parallelism() == 3
    assert env.get_config().get_auto_watermark_interval() == 50
    assert not env.is_chaining_enabled()
    assert env.get_config().get_global_job_parameters() == {"city": "Berlin", "year": "2026"}
    with pytest.raises(ConfigurationError, match="a number of milliseconds, not 'soon'"):
        env.configure(Configuration().set_string("pipeline.auto-watermark-interval", "soon"))


def test_the_arrival_rate_is_a_number_above_zero() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_config().get_arrival_rate() == 1000
    for rate in (0, -1, float("inf"), True, "fast"):
        with pytest.raises(ConfigurationError, match="number of elements per second above zero"):
            env.get_config().set_arrival_rate(rate)  # type: ignore[arg-type]
