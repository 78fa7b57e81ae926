"""Settings by keys, and which of them an environment takes."""

import pytest

from flinkcore.common import ConfigOptions, Configuration
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError


def test_values_are_read_as_what_they_are_asked_for() -> None:
    settings = Configuration().set_string("a", "5").set_boolean("b", True).set_float("c", 2)
    assert settings.get_integer("a", 0) == 5
    assert settings.get_boolean("b", False) is True
    assert settings.get_string("b", "") == "true"
    assert settings.get_float("c", 0.0) == 2.0
    assert settings.get_string("d", "default") == "default"
    assert settings.to_dict() == {"a": "5", "b": "true", "c": "2.0"}
    with pytest.raises(ConfigurationError, match="b must be an integer, not 'yes'"):
        Configuration.from_dict({"b": "yes"}).get_integer("b", 0)
    with pytest.raises(ConfigurationError, match="b must be true or false, not 'yes'"):
        Configuration.from_dict({"b": "yes"}).get_boolean("b", False)
    with pytest.raises(ConfigurationError, match="a must be an integer, not 'x'"):
        Configuration().set_integer("a", "x")  # type: ignore[arg-type]


def test_a_copy_does_not_change_with_its_origin() -> None:
    first = Configuration().set_integer("a", 1)
    second = Configuration(first)
    first.set_integer("a", 2)
    assert second.get_integer("a", 0) == 1
    assert second.add_all(first, "x.") is second
    assert second.key_set() == {"a", "x.a"}
    assert second.remove_config("a")
    assert not second.remove_config("a")


def test_a_configuration_is_shown_as_in_pyflink_without_its_secrets() -> None:
    configuration = Configuration().set_string("k1", "v1").set_integer("k2", 1).set_boolean("k3", True)
    assert str(configuration) == "{k1=v1, k2=1, k3=true}"
    assert (
        str(Configuration().set_string("s3.Secret-key", "x").set_float("f", 2))
        == "{s3.Secret-key=******, f=2.0}"
    )


def test_values_that_are_not_set_are_the_defaults_even_none() -> None:
    configuration = Configuration().set_bytearray("bytes", bytearray(b"ab"))
    assert configuration.get_string("a", None) is None
    assert configuration.get_integer("a", None) is None
    assert configuration.get_boolean("a", None) is None
    assert configuration.get_float("a", 1) == 1.0
    assert configuration.get_bytearray("bytes", bytearray()) == b"ab"
    assert configuration.to_dict() == {"bytes": "!!binary |-\n  YWI="}
    with pytest.raises(ConfigurationError, match="the setting text must be bytes, not 'x'"):
        configuration.set_string("text", "x").get_bytearray("text", bytearray())
    with pytest.raises(ConfigurationError, match="the setting text takes a text here, not 3"):
        configuration.set_string("text", 3)  # type: ignore[arg-type]


def test_options_have_types_and_defaults() -> None:
    parallelism = ConfigOptions.key("application.parallelism").int_type().default_value(100)
    assert (parallelism.key(), parallelism.has_default_value(), parallelism.default_value()) == (
        "application.parallelism",
        True,
        100,
    )
    name = ConfigOptions.key("user.name").string_type().no_default_value()
    assert not name.has_default_value()
    configuration = Configuration()
    assert (configuration.get(parallelism), configuration.get(name)) == (100, None)
    assert configuration.set(parallelism, "7").get(parallelism) == 7
    with pytest.raises(ConfigurationError, match=r"application\.parallelism must be an integer"):
        configuration.set(parallelism, 2**31)
    with pytest.raises(ConfigurationError, match="the default of a must be true or false, not 5"):
        ConfigOptions.key("a").boolean_type().default_value(5)
    numbers = [ConfigOptions.key("a").double_type(), ConfigOptions.key("a").float_type()]
    assert [number.default_value("1.5").default_value() for number in numbers] == [1.5, 1.5]
    assert ConfigOptions.key("a").long_type().default_value(2**62).default_value() == 2**62


def test_lists_are_read_as_in_pyflink() -> None:
    assert Configuration.parse_list_value("[a, b]") == Configuration.parse_list_value("a;b") == ["a", "b"]
    assert Configuration.parse_list_value("") == []


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
    with pytest.raises(ConfigurationError, match=r"must be a length of time .*, not 'soon'"):
        env.configure(Configuration().set_string("pipeline.auto-watermark-interval", "soon"))


def test_the_arrival_rate_is_checked_by_its_key_as_by_its_setter() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_config().get_arrival_rate() == 1000
    message = r"flinkcore\.arrival-rate must be a number from 1e-06 to 1e\+12, not"
    numbers = (0, -1, float("inf"), float("nan"), True, 10**400)
    for rate in (*numbers, "fast", "0", "-5", "nan", "inf", "1e-15", "1_0"):
        with pytest.raises(ConfigurationError, match=message):
            env.get_config().set_arrival_rate(rate)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=message):
            env.configure({"flinkcore.arrival-rate": rate})  # type: ignore[dict-item]
    assert env.get_config().get_arrival_rate() == 1000
    env.configure({"flinkcore.arrival-rate": "2.5"})
    assert env.get_config().get_arrival_rate() == 2.5
