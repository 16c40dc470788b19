"""`python -m py_runtime`: chat and inspect, from a terminal."""

import sys

from py_runtime.app.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
