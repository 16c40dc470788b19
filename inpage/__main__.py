"""python -m inpage: see `inpage --help`."""

import sys

from inpage.command import main

sys.exit(main())
