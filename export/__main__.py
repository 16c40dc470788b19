"""python -m export: see `python -m export --help`."""

import sys

from export.command import main

sys.exit(main(sys.argv[1:]))
