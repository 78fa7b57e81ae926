"""Libraries that only some jobs need, each of which an extra of this package installs."""

import importlib
from types import ModuleType

from flinkcore.errors import ConfigurationError


def library(module: str, extra: str, needed_by: str) -> ModuleType:
    """Import a module of a library that an extra installs.

    Parameters
    ----------
    module : str
        Full name.
    extra : str
        Extra of this package.
    needed_by : str
        Name of the feature that needs it, for the message.

    Raises
    ------
    ConfigurationError
        If the library is not installed; names the extra.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        root = module.partition(".")[0]
        if missing.name is None or missing.name.partition(".")[0] != root:
            raise
        raise ConfigurationError(
            f"{needed_by} needs the library {root}, which is not installed: pip install 'flinkcore[{extra}]'"
        ) from None
