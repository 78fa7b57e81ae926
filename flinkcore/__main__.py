"""`python -m flinkcore` is the command `flinkcore`."""

import sys

from flinkcore.cli import main

if __name__ == "__main__":
    sys.exit(main())
