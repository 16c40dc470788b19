"""Does ahead of time what the server needs done once: the runtime's wheel, the snapshot of Python
with it, compressed variants."""

import sys

from tools.compress import VariantStore, may_pay
from tools.errors import exit_status
from tools.site import Site
from tools.snapshot import SnapshotError


def prepare() -> None:
    """Where the snapshot fails it says so, and the rest is done."""
    site, variants = Site.of_checkout(), VariantStore()
    try:
        site.snapshots.make(site.wheels.current())
    except SnapshotError as error:  # pages start without it, only later
        print(f"inpage: {error}", file=sys.stderr)
    for resource in filter(None, map(site.find, site.urls())):
        if resource.sha256 and may_pay(resource.url, resource.size):
            variants.make(resource.sha256, resource.read())


if __name__ == "__main__":
    sys.exit(exit_status(prepare))
