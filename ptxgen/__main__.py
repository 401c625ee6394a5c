"""Entry point of ``python -m ptxgen``."""

import sys

from ptxgen.cli import main

if __name__ == "__main__":
    sys.exit(main())
