"""The type of a column of which files of one log have different ones: the narrowest that keeps every value."""

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_type

_UNITS = ("s", "ms", "us", "ns")
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Decimal digits of an integer with so many bits; an unsigned one of 64 bits has one more."""
_FLOAT_BITS = {16: 11, 32: 24, 64: 53}
"""Bits of the integers that a float with so many bits holds without rounding."""
_MOST_DIGITS = 76


def unified_type(known: pa.DataType, found: pa.DataType, is_text: bool = False) -> pa.DataType:
    """Return the plain type that holds the values of two plain types.

    Integers become wider; integers and floats become double, and unsigned 64-bit integers with signed ones uint64,
    so values that these do not hold are to be refused where they are read. Decimals, times and timestamps get the
    finer unit, structs all fields of both, by name and at any depth.

    Parameters
    ----------
    known : pyarrow.DataType
        The type so far. The fields of its structs come first, in their order.
    found : pyarrow.DataType
        The type in a further file, or in another part of a file. Where the two contradict each other, the known one
        stays, which `fits` finds.
    is_text : bool
        Whether the values of both are text, so that a string holds them if the types contradict each other.
    """
    types = pa.types
    if types.is_struct(known) and types.is_struct(found):
        fields = {field.name: plain_type(field.type) for field in known}
        for field in found:
            before = fields.get(field.name, pa.null())
            fields[field.name] = unified_type(before, plain_type(field.type), is_text)
        return pa.struct(list(fields.items()))
    if types.is_map(known) and types.is_map(found):
        return pa.map_(
            unified_type(plain_type(known.key_type), plain_type(found.key_type), is_text),
            unified_type(plain_type(known.item_type), plain_type(found.item_type), is_text),
        )
    if _is_list(known) and _is_list(found):
        return pa.list_(unified_type(plain_type(known.value_type), plain_type(found.value_type), is_text))
    wider = _wider(known, found)
    if wider is None and is_text:
        return pa.string()
    return known if wider is None else wider  # a struct without fields is false


def unified_schema(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return a schema with the columns of both, of their unified types."""
    return pa.schema(list(unified_type(pa.struct(list(known)), pa.struct(list(found)))))


def _is_list(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type)
    )


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of both; None if they contradict each other."""
    if one == other or pa.types.is_null(other):
        return one
    return other if pa.types.is_null(one) else _wider_ordered(one, other) or _wider_ordered(other, one)


def _wider_ordered(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """As `_wider`; also None if the types are known in the other order."""
    types = pa.types
    if types.is_integer(one) and types.is_integer(other):
        return _wider_integer(one, other)
    if types.is_floating(one) and types.is_floating(other):
        return one if one.bit_width > other.bit_width else other
    if types.is_floating(one) and types.is_integer(other):
        return pa.float64()
    if types.is_decimal(one) and (types.is_decimal(other) or types.is_integer(other)):
        return _wider_decimal(one, other)
    if types.is_timestamp(one) and types.is_timestamp(other) and (one.tz is None) == (other.tz is None):
        return pa.timestamp(_finer(one, other), one.tz if one.tz == other.tz else "UTC")
    if types.is_timestamp(one) and types.is_date(other):
        return one if one.tz is None else None
    if types.is_date64(one) and types.is_date32(other):
        return one
    if types.is_time(one) and types.is_time(other):
        unit = _finer(one, other)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if types.is_duration(one) and types.is_duration(other):
        return pa.duration(_finer(one, other))
    if types.is_binary(one) and types.is_fixed_size_binary(other):
        return one
    return None


def _wider_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    bits = max(one.bit_width, other.bit_width)
    if pa.types.is_signed_integer(one) and pa.types.is_signed_integer(other):
        return _INTEGERS[bits]
    if pa.types.is_unsigned_integer(one) and pa.types.is_unsigned_integer(other):
        return _UNSIGNED[bits]
    unsigned, signed = (one, other) if pa.types.is_unsigned_integer(one) else (other, one)
    if unsigned.bit_width == 64:
        return pa.uint64()
    return _INTEGERS[max(2 * unsigned.bit_width, signed.bit_width)]


def _wider_decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    precision, scale = (
        (other.precision, other.scale)
        if pa.types.is_decimal(other)
        else (_DIGITS[other.bit_width] + (other == pa.uint64()), 0)
    )
    most_scale = max(one.scale, scale)
    digits = max(one.precision - one.scale, precision - scale) + most_scale
    if digits > _MOST_DIGITS:
        return None
    return pa.decimal128(digits, most_scale) if digits <= 38 else pa.decimal256(digits, most_scale)


def _finer(one: pa.DataType, other: pa.DataType) -> str:
    return _UNITS[max(_UNITS.index(one.unit), _UNITS.index(other.unit))]


def fits(found: pa.DataType, wanted: pa.DataType, is_exact: bool = False) -> bool:
    """Return whether the values of a plain type can be read as those of another.

    Parameters
    ----------
    found, wanted : pyarrow.DataType
        The names of lists' items do not count.
    is_exact : bool
        Whether `wanted` must hold every value of `found`, and structs must have the same fields. Otherwise the types
        may be such as `unified_type` makes: values that `wanted` does not hold are to be refused where they are read,
        and fields of structs that only one of the types has do not count.
    """
    types = pa.types
    if types.is_struct(found) and types.is_struct(wanted):
        if is_exact and [field.name for field in found] != [field.name for field in wanted]:
            return False
        there = {field.name: plain_type(field.type) for field in found}
        return all(
            fits(there[field.name], plain_type(field.type), is_exact)
            for field in wanted
            if field.name in there
        )
    if types.is_map(found) and types.is_map(wanted):
        return fits(plain_type(found.key_type), plain_type(wanted.key_type), is_exact) and fits(
            plain_type(found.item_type), plain_type(wanted.item_type), is_exact
        )
    if _is_list(found) and _is_list(wanted):
        return fits(plain_type(found.value_type), plain_type(wanted.value_type), is_exact)
    if is_exact and types.is_integer(found) and types.is_floating(wanted):
        return bool(found.bit_width <= _FLOAT_BITS[wanted.bit_width])
    if is_exact and types.is_signed_integer(found) and types.is_unsigned_integer(wanted):
        return False
    return bool(_wider(wanted, found) == wanted)


def fields_beyond(found: pa.Schema | pa.DataType, known: pa.Schema | pa.DataType) -> list[str]:
    """Return the names of columns, and of fields at any depth of structs and lists, that only `found` has.

    Parameters
    ----------
    found, known : pyarrow.Schema or pyarrow.DataType
        Schemas, or nested types.

    Returns
    -------
    list of str
        With the names around them, such as ``payload.commits[].size``.
    """
    there = {field.name: plain_type(field.type) for field in known}
    names = []
    for field in found:
        if field.name not in there:
            names.append(field.name)
            continue
        one, other, name = plain_type(field.type), there[field.name], field.name
        while _is_list(one) and _is_list(other):
            one, other, name = plain_type(one.value_type), plain_type(other.value_type), f"{name}[]"
        if pa.types.is_struct(one) and pa.types.is_struct(other):
            names += [f"{name}.{within}" for within in fields_beyond(one, other)]
    return names
