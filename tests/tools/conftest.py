"""The small site, and a real server of it."""

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serve import create_app
from tests.tools.small_site import Reply, make_site, serving_app
from tools.compress import VariantStore, may_pay
from tools.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """Serve a small site with its compressed variants made; yield its folder and port."""
    root = tmp_path_factory.mktemp("served")
    site, variants = make_site(root), VariantStore(root / "cache")
    for resource in filter(None, map(site.find, site.urls())):
        if resource.sha256 and may_pay(resource.url, resource.size):
            variants.make(resource.sha256, resource.read())
    with serving_app(create_app(site, variants)) as port:
        yield root, port


@pytest.fixture
def ask(served: tuple[Path, int]) -> Callable[..., Reply]:
    """Send one request, its path and headers just as given."""

    def ask(path: str, method: str = "GET", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", served[1], timeout=30)
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        reply = Reply(response.status, fields, response.read())
        connection.close()
        return reply

    return ask
