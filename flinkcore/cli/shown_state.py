"""Options of the commands that show the states of a checkpoint or of a savepoint."""

from __future__ import annotations

import argparse

from flinkcore.errors import ConfigurationError


def add_options(
    show: argparse.ArgumentParser,
    of: str,
    operator_help: str = "only this operator",
    limited: str = "entries",
) -> None:
    """Add the options of a command `show`.

    Parameters
    ----------
    show
        Parser of the command.
    of
        Kind of directory that it shows.
    operator_help
        Help of `--operator`.
    limited
        Lines whose number `--limit` bounds.
    """
    show.add_argument("path", metavar="DIR", help=f"directory of the {of}, or its URI")
    show.add_argument("--state", metavar="NAME", help="print the entries of this state")
    show.add_argument("--operator", metavar="UID", help=operator_help)
    show.add_argument("--key", help="only the entries of this key, with --state")
    show.add_argument("--limit", type=int, default=20, help=f"print so many {limited} at most")


def check_options(arguments: argparse.Namespace) -> None:
    """Check what the options say together.

    Raises
    ------
    ConfigurationError
        If a key comes without a state, or the limit is negative.
    """
    if arguments.key is not None and arguments.state is None:
        raise ConfigurationError("--key needs --state: the state whose entries are to be printed")
    if arguments.limit < 0:
        raise ConfigurationError(f"--limit is {arguments.limit}; it is 0 or more")
