"""What is suspicious of a text file and yet no error, in words."""


def empty_file(name: str) -> str:
    """Return the warning of a file that has nothing in it."""
    return f"{name} is empty: it adds no event. Take it out of the log if nothing is missing"


def no_last_line_break(name: str) -> str:
    """Return the warning of a file of rows whose last one may be cut."""
    return (
        f"{name} ends without a line break: if it was cut off, the last value of its last row may be, too. "
        "End the file with a line break if it is whole"
    )
