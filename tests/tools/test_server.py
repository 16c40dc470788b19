"""serve.py over a real connection: what a browser, a proxy or an attacker would send it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest

from serve import accepted_encodings
from tests.tools.small_site import (
    GRAPH,
    SCRIPT,
    STRAY,
    WASM,
    WEIGHTS,
    WHEEL_URL,
    BuiltWheel,
    Reply,
)
from tools.site import IMMUTABLE, SECURITY_HEADERS
from tools.wheel import WheelError

Ask = Callable[..., Reply]
WEIGHTS_URL = "/models/tiny/weights.safetensors"


@pytest.fixture
def pyodide(ask: Ask) -> str:
    return "/" + json.loads(ask("/site.json").body)["pyodide"]


# ---- headers


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/", "GET", 200), ("/nothing", "GET", 404), ("/", "POST", 405), ("/site.json", "HEAD", 200)],
)
def test_every_answer_carries_the_security_headers(
    ask: Ask, path: str, method: str, status: int
) -> None:
    reply = ask(path, method)
    assert reply.status == status
    for name, value in SECURITY_HEADERS.items():
        assert reply.headers[name.lower()] == value


def test_the_policy_allows_wasm_but_neither_inline_scripts_nor_eval() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"].split("; ")
    assert "default-src 'self'" in policy
    assert "script-src 'self' 'wasm-unsafe-eval'" in policy
    assert not any("'unsafe-" in rule for rule in policy)


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/kernels/add.wgsl", "text/plain; charset=utf-8"),
        ("/site.json", "application/json"),
        (f"/{WHEEL_URL}", "application/octet-stream"),
        (WEIGHTS_URL, "application/octet-stream"),
        ("/models/tiny/manifest.json", "application/octet-stream"),
        ("/models/tiny/graph.json", "application/octet-stream"),
    ],
)
def test_media_types(ask: Ask, path: str, media_type: str) -> None:
    assert ask(path).headers["content-type"] == media_type


def test_media_types_of_pyodide(ask: Ask, pyodide: str) -> None:
    wasm, module = ask(pyodide + "pyodide.asm.wasm"), ask(pyodide + "pyodide.mjs")
    assert wasm.headers["content-type"] == "application/wasm"
    assert module.headers["content-type"] == "text/javascript; charset=utf-8"


def test_hashed_urls_are_immutable_and_the_rest_revalidates(ask: Ask, pyodide: str) -> None:
    described = json.loads(ask("/site.json").body)
    for path in (pyodide + "pyodide.mjs", f"/{described['vendor']}marked.js", f"/{WHEEL_URL}"):
        assert ask(path).headers["cache-control"] == IMMUTABLE
    for path in ("/", "/app.js", "/site.json", "/models.json", WEIGHTS_URL):
        assert ask(path).headers["cache-control"] == "no-cache"
    assert ask("/nothing").headers["cache-control"] == "no-store"


# ---- ETag


@pytest.mark.parametrize("path", ["/", "/app.js", "/site.json", WEIGHTS_URL])
def test_etag_gives_304(ask: Ask, path: str) -> None:
    first = ask(path)
    etag = first.headers["etag"]
    assert etag.startswith('"')
    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = ask(path, If_None_Match=sent)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == etag
        assert again.headers["cache-control"] == first.headers["cache-control"]
    assert ask(path, If_None_Match='"other"').status == 200


def test_edits_are_visible_at_once(ask: Ask, served: tuple[Path, int]) -> None:
    page = served[0] / "web" / "edited.html"
    assert ask("/edited.html").status == 404
    page.write_text("first text")
    first = ask("/edited.html")
    page.write_text("other text, same URL")
    again = ask("/edited.html", If_None_Match=first.headers["etag"])
    assert (first.body, again.status, again.body) == (b"first text", 200, b"other text, same URL")


def test_large_files_are_told_apart_without_reading_them(
    ask: Ask, served: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.site.MAX_HASHED_SIZE", 100)
    monkeypatch.setattr("tools.site.sha256_of", lambda path: pytest.fail(f"read {path}"))
    weights = served[0] / "models" / "tiny" / "weights.safetensors"
    etag = ask(WEIGHTS_URL).headers["etag"]
    assert ask(WEIGHTS_URL, If_None_Match=etag).status == 304
    weights.write_bytes(WEIGHTS + b"!")
    assert ask(WEIGHTS_URL, If_None_Match=etag).status == 200
    weights.write_bytes(WEIGHTS)


# ---- ranges


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("0-0", 0, 0), ("10-19", 10, 19), ("990-", 990, 999), ("-5", 995, 999), ("5-9999", 5, 999)],
)
def test_a_range(ask: Ask, asked: str, first: int, last: int) -> None:
    reply = ask(WEIGHTS_URL, Range=f"bytes={asked}")
    assert reply.status == 206
    assert reply.headers["content-range"] == f"bytes {first}-{last}/1000"
    assert reply.body == WEIGHTS[first : last + 1]


def test_several_ranges_come_as_one_multipart_answer(ask: Ask) -> None:
    reply = ask(WEIGHTS_URL, Range="bytes=0-3,10-13")
    assert reply.status == 206
    assert reply.headers["content-type"].startswith("multipart/byteranges; boundary=")
    assert b"bytes 0-3/1000\r\n\r\n" + WEIGHTS[:4] + b"\r\n" in reply.body
    assert b"bytes 10-13/1000\r\n\r\n" + WEIGHTS[10:14] + b"\r\n" in reply.body


def test_absurdly_many_ranges_get_the_whole_file(ask: Ask) -> None:
    reply = ask(WEIGHTS_URL, Range="bytes=" + ",".join(f"{at}-{at}" for at in range(0, 900, 2)))
    assert (reply.status, reply.body) == (200, WEIGHTS)


@pytest.mark.parametrize("asked", ["bytes=1000-", "bytes=5000-6000"])
def test_a_range_past_the_end(ask: Ask, asked: str) -> None:
    reply = ask(WEIGHTS_URL, Range=asked)
    assert reply.status == 416
    assert reply.headers["content-range"] == "bytes */1000"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("asked", ["bytes", "bytes=", "bytes=9-3", "bytes=a-b", "lines=1-2"])
def test_a_malformed_range(ask: Ask, asked: str) -> None:
    reply = ask(WEIGHTS_URL, Range=asked)
    assert reply.status == 400
    assert WEIGHTS not in reply.body


def test_if_range(ask: Ask) -> None:
    etag = ask(WEIGHTS_URL).headers["etag"]
    assert ask(WEIGHTS_URL, Range="bytes=0-9", If_Range=etag).status == 206
    for changed in ('"other"', f"W/{etag}"):
        reply = ask(WEIGHTS_URL, Range="bytes=0-9", If_Range=changed)
        assert (reply.status, reply.body) == (200, WEIGHTS)


def test_ranges_are_for_get_alone(ask: Ask) -> None:
    reply = ask(WEIGHTS_URL, "HEAD", Range="bytes=0-9")
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["content-length"] == "1000"


# ---- compression


def test_brotli_before_gzip_before_plain(ask: Ask, pyodide: str) -> None:
    path = pyodide + "pyodide.asm.wasm"
    br = ask(path, Accept_Encoding="gzip, deflate, br, zstd")
    gz = ask(path, Accept_Encoding="gzip")
    plain = ask(path)
    assert [reply.headers.get("content-encoding") for reply in (br, gz, plain)] == [
        "br",
        "gzip",
        None,
    ]
    assert brotli.decompress(br.body) == gzip.decompress(gz.body) == plain.body == WASM
    assert len({reply.headers["etag"] for reply in (br, gz, plain)}) == 3
    assert {reply.headers["vary"] for reply in (br, gz, plain)} == {"Accept-Encoding"}
    assert {reply.headers["content-type"] for reply in (br, gz, plain)} == {"application/wasm"}


def test_a_compressed_answer_has_its_own_etag(ask: Ask) -> None:
    etag = ask("/app.js", Accept_Encoding="br").headers["etag"]
    again = ask("/app.js", Accept_Encoding="br", If_None_Match=etag)
    assert again.status == 304
    assert again.headers["vary"] == "Accept-Encoding"
    assert ask("/app.js", If_None_Match=etag).body == SCRIPT


def test_a_range_is_cut_from_the_plain_file(ask: Ask) -> None:
    reply = ask("/app.js", Accept_Encoding="br", Range="bytes=0-9")
    assert (reply.status, reply.body) == (206, SCRIPT[:10])
    assert "content-encoding" not in reply.headers


def test_what_does_not_pay_stays_plain(ask: Ask) -> None:
    for path in (WEIGHTS_URL, f"/{WHEEL_URL}"):
        reply = ask(path, Accept_Encoding="br, gzip")
        assert not {"content-encoding", "vary"} & reply.headers.keys()


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", {""}),
        ("br", {"br"}),
        ("GZIP;q=0.5 , br ; q=1", {"gzip", "br"}),
        ("br;q=0, gzip; q=0.001", {"gzip"}),
        ("br; q=0.000", set()),
    ],
)
def test_accept_encoding(header: str, accepted: set[str]) -> None:
    assert accepted_encodings(header) == accepted


# ---- what is not there


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/../secret.txt",
        "/kernels/../../secret.txt",
        "/kernels/../index.html",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e%5csecret.txt",
        "/..\\secret.txt",
        "/%252e%252e/secret.txt",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/index.html%00.js",
        "/index.html%0a",
        "/index.html/",
        "/kernels",
        "/kernels/",
        "/.env",
        "/.hidden/key.txt",
        "/kernels/./add.wgsl",
        "/link.txt",
        "/folder/secret.txt",
        "/folder/web/index.html",
        "/assets/.current.json",
        "/assets/0123456789abcdef/../.current.json",
        "/pyodide/pyodide.mjs",
        "/pyodide/314.0.3-00000000/pyodide.mjs",
        "/models",
        "/models/",
        "/models/tiny",
        "/models/tiny/../../secret.txt",
        "/models/linked/manifest.json",
        "/models/linked/graph.json",
        "/models/torn/weights.safetensors",
        "/models/tiny/MANIFEST.JSON",
        "/models/tiny/manifest.json/",
        "/models/tiny/graph.json.br",
        "/models//tiny/manifest.json",
        "/Models/tiny/manifest.json",
        *(f"/models/tiny/{name}" for name in STRAY),
        "/models/tiny/x%2ehtml",
        "/models/tiny/sub%2fx.html",
        "/models/unfinished/weights.safetensors",
        "/models/.cache/manifest.json",
        "/" + "a" * 5000,
        "/%ff%fe",
    ],
)
def test_nothing_there(ask: Ask, path: str) -> None:
    reply = ask(path)
    assert reply.status == 404
    assert b"not for the web" not in reply.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods(ask: Ask, method: str) -> None:
    reply = ask("/", method)
    assert reply.status == 405
    assert {name.strip() for name in reply.headers["allow"].split(",")} == {"GET", "HEAD"}


def test_head_has_get_s_headers_and_no_body(ask: Ask) -> None:
    for path in ("/", "/site.json"):
        head, get = ask(path, "HEAD"), ask(path)
        assert head.body == b""
        assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


@pytest.mark.parametrize("path", ["/app.js", WEIGHTS_URL])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_file_in_one_piece_is_answered_as_one_in_several(
    ask: Ask, path: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer() -> tuple[int, dict[str, str], bytes]:
        reply = ask(path, method, Accept_Encoding="br")
        return reply.status, {**reply.headers, "date": ""}, reply.body

    whole = answer()
    monkeypatch.setattr("serve.CHUNK", 0)
    assert answer() == whole


def test_a_wheel_that_cannot_be_built_is_told_to_the_page(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: BuiltWheel) -> Path:
        raise WheelError("the wheel could not be built: a reason")

    monkeypatch.setattr(BuiltWheel, "current", fail)
    reply = ask("/site.json")
    assert (reply.status, reply.body) == (500, b"the wheel could not be built: a reason\n")
    assert reply.headers["cross-origin-opener-policy"] == "same-origin"


# ---- models


SANDBOX = "default-src 'none'; frame-ancestors 'none'; sandbox"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/models/tiny/manifest.json", 200),
        (WEIGHTS_URL, 200),
        ("/%6dodels/tiny/graph.json", 200),
        ("/models/torn/manifest.json", 200),
        ("/models/tiny/x.html", 404),
        ("/models/nothing", 404),
    ],
)
def test_nothing_of_a_model_is_a_document_of_this_origin(ask: Ask, path: str, status: int) -> None:
    for headers in ({}, {"Accept_Encoding": "br"}, {"If_None_Match": "*"}, {"Range": "bytes=0-1"}):
        reply = ask(path, **headers)
        assert reply.status in (status, 304, 206)
        assert reply.headers["content-security-policy"] == SANDBOX
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        wanted = "application/octet-stream" if status == 200 else "text/plain; charset=utf-8"
        assert reply.headers.get("content-type", wanted) == wanted


def test_compressing_leaves_a_models_type(ask: Ask) -> None:
    reply = ask("/models/tiny/graph.json", Accept_Encoding="br")
    assert (brotli.decompress(reply.body), reply.headers["content-encoding"]) == (GRAPH, "br")
    assert reply.headers["content-type"] == "application/octet-stream"


def test_models_json(ask: Ask) -> None:
    facts = {"size": 2011, "parameters": 7, "context": 64, "quantisation": "none", "gpu_bytes": 99}
    linked, tiny, torn = json.loads(ask("/models.json").body)
    assert tiny == {"name": "tiny", "path": "models/tiny/", **facts, "largest_buffer": 1}
    assert linked.keys() == torn.keys() == {"name", "path", "error"}
    assert (linked["path"], torn["path"]) == ("models/linked/", "models/torn/")
    assert linked["error"] == "it is a link, and those are not followed; put the folder itself here"
    assert torn["error"].startswith("manifest.json is not JSON: Expecting property name")


def test_a_models_file(ask: Ask) -> None:
    assert ask(WEIGHTS_URL).body == WEIGHTS
