"""The work that the server needs done once: wheel, snapshot of Python, compressed variants.

python -m tools.prepare [page]   page: all but the models, which may be on their way
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tools.compress import VariantStore, may_pay
from tools.errors import exit_status
from tools.site import Resource, Site
from tools.snapshot import SnapshotError


def prepare(*, with_models: bool) -> None:
    """Prepare the site; where the snapshot fails it says so, and the rest is done."""
    site, variants = Site.of_checkout(), VariantStore()
    try:
        site.snapshots.make(site.wheels.current())
    except SnapshotError as error:  # pages start without it, only later
        print(f"inpage: {error}", file=sys.stderr)

    def compress(resource: Resource) -> None:
        if resource.sha256 and may_pay(resource.url, resource.size):
            variants.make(resource.sha256, resource.read())

    with ThreadPoolExecutor() as threads:  # both libraries compress outside Python's lock
        urls = site.urls() if with_models else site.page_urls()
        list(threads.map(compress, filter(None, map(site.find, urls))))


if __name__ == "__main__":
    sys.exit(exit_status(partial(prepare, with_models=sys.argv[1:] != ["page"])))
