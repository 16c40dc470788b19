"""`python -m inpage` is the command `inpage`."""

import sys

from inpage.command import main

sys.exit(main())
