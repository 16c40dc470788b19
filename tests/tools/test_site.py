"""The site's one description, and the static build made from it."""

import hashlib
import json
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

import brotli
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from py_runtime import __version__
from py_runtime.base.defaults import DEFAULTS, DEVICE_VARIABLE
from serve import device_of_pages, main, models_found, parse
from tests.tools.small_site import SCRIPT, WASM, WHEEL_URL, write_files
from tools.compress import VariantStore, compress
from tools.errors import UserError
from tools.files import ROOT
from tools.models import Models
from tools.site import HUB_ORIGINS, SECURITY_HEADERS, Site, SiteError, files_in
from tools.static_build import BuildError, build
from tools.vendor import MODULES, STYLE, STYLE_SOURCE, VendorError, collect

STEPS = (
    *("..", ".", "", "~", "...", "\\", "\0", "%2e%2e", "C:", "nul\n", ".env", ".hidden"),
    *("web", "index.html", "secret.txt", "link.txt", "folder", "key.txt", "kernels", "add.wgsl"),
    *("models", "tiny", "linked", "manifest.json", "assets", "pyodide", "vendor", ".current.json"),
    *("x.html", "sub", "graph.json", "weights.safetensors", "torn", "model.pte", "config.json"),
)


@pytest.fixture
def variants(tmp_path: Path) -> VariantStore:
    return VariantStore(tmp_path / "cache")


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def make_site_anew(site: Site, device: str | None = None) -> Site:
    root, parts = site.models.root, (site.web, site.pyodide, site.vendor)
    return Site(*parts, site.wheels, site.snapshots, root, device=device)


# ---- the description


def test_the_urls_of_the_small_site(site: Site) -> None:
    pyodide = f"pyodide/{site.pyodide_folder}"
    assert sorted(site.urls()) == sorted(
        [
            *("index.html", "app.js", "style.css", "kernels/add.wgsl"),
            *("site.json", "models.json", WHEEL_URL),
            *(f"{pyodide}/pyodide.mjs", f"{pyodide}/pyodide.asm.wasm"),
            *(f"{pyodide}/pyodide-lock.json", f"{pyodide}/rare-1-any.whl"),
            f"vendor/{site.vendor_folder}/marked.js",
            *("models/tiny/manifest.json", "models/tiny/graph.json"),
            *("models/tiny/weights.safetensors", "models/torn/manifest.json"),
        ]
    )


def test_every_listed_url_is_found_and_has_a_sound_etag(site: Site) -> None:
    for url in site.urls():
        resource = site.find(url)
        assert resource
        assert resource.size == len(resource.read())
        assert resource.etag
        assert resource.etag.isalnum()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(STEPS) | st.text(max_size=5), max_size=6))
def test_whatever_is_asked_only_listed_urls_answer(site: Site, steps: list[str]) -> None:
    url = "/".join(steps)
    assert site.find(url) is None or url == "" or url in set(site.urls())


@pytest.mark.parametrize("device", ["gpu", "cpu", None])
def test_the_environment_says_which_device_pages_take(
    device: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    if device:
        monkeypatch.setenv(DEVICE_VARIABLE, device)
    assert device_of_pages() == device


@pytest.mark.parametrize("device", ["gpu", "cpu", None])
def test_site_json_says_which_device_pages_take(site: Site, device: str | None) -> None:
    assert make_site_anew(site, device).describe().get("device") == device


def test_no_site_is_served_with_a_device_that_there_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pages could load nothing."""
    monkeypatch.setenv(DEVICE_VARIABLE, "tpu")
    with pytest.raises(UserError, match="INPAGE_DEVICE is 'tpu' here; it must be gpu or cpu"):
        device_of_pages()


def test_a_site_that_is_built_has_nothing_of_the_builders_environment(
    site: Site, variants: VariantStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_checkout(root: Path | None, hub: tuple[str, ...], device: str | None = None) -> Site:
        return make_site_anew(site, device)

    monkeypatch.setattr(Site, "of_checkout", of_checkout)
    monkeypatch.setattr("serve.VariantStore", lambda: variants)
    built = []
    for device in ("cpu", "tpu", ""):
        monkeypatch.setenv(DEVICE_VARIABLE, device)
        out = tmp_path / f"built with {device}"
        assert main(["build", str(out)]) == 0
        built.append(contents(out))
    assert built[0] == built[1] == built[2]
    assert "device" not in json.loads(built[0]["site.json"])


def test_site_json_leads_to_the_hashed_files(site: Site) -> None:
    resource = site.find("site.json")
    assert resource
    described = json.loads(resource.read())
    described.pop("release")
    described.pop("files")
    assert described == {
        "version": __version__,
        "pyodide": f"pyodide/{site.pyodide_folder}/",
        "vendor": f"vendor/{site.vendor_folder}/",
        "runtime": WHEEL_URL,
        "defaults": DEFAULTS,
        "packages": ["numpy", "jinja2"],
        "headers": {name.lower(): text for name, text in SECURITY_HEADERS.items()},
    }
    wasm = site.find(described["pyodide"] + "pyodide.asm.wasm")
    assert wasm
    assert wasm.read() == WASM


def test_a_folder_that_has_just_gone_has_no_files(tmp_path: Path) -> None:
    """An editor may make and remove one while the page starts."""
    assert files_in(tmp_path / "gone") == []


def test_pyodides_url_changes_with_any_of_its_files(site: Site, tmp_path: Path) -> None:
    (tmp_path / "pyodide" / "pyodide.mjs").write_bytes(SCRIPT + b"\n")
    changed = Site(
        site.web, site.pyodide, site.vendor, site.wheels, site.snapshots, site.models.root
    )
    assert changed.pyodide_folder != site.pyodide_folder
    assert changed.pyodide_folder.startswith("314.0.3-")


def test_the_libraries_url_changes_with_any_of_them(site: Site, tmp_path: Path) -> None:
    (tmp_path / "vendor" / "marked.js").write_bytes(SCRIPT + b"\n")
    changed = Site(
        site.web, site.pyodide, site.vendor, site.wheels, site.snapshots, site.models.root
    )
    assert changed.vendor_folder != site.vendor_folder


def test_libraries_come_with_their_licences_and_without_maps(tmp_path: Path) -> None:
    packages, vendor = tmp_path / "node_modules", tmp_path / "collected"
    for module, licence in MODULES.values():
        write_files(packages, {module: SCRIPT + b"//# sourceMappingURL=x.map\n", licence: b"free"})
    kinds = b'url(fonts/a.woff2) format("woff2"),url(fonts/a.woff) format("woff")'
    style = {STYLE_SOURCE: b"x{src:" + kinds + b"}", "katex/dist/fonts/a.woff2": WASM}
    write_files(packages, style)
    collect(packages, vendor)
    assert contents(vendor) == dict.fromkeys(MODULES, SCRIPT) | {
        **{name.replace(".js", "-licence.txt"): b"free" for name in MODULES},
        **{STYLE: b'x{src:url(a.woff2) format("woff2")}', "a.woff2": WASM},
    }
    (packages / "marked/LICENSE").unlink()
    with pytest.raises(VendorError, match=r"marked/LICENSE cannot be read: .*Run: npm ci"):
        collect(packages, vendor)


def test_a_site_without_models(site: Site) -> None:
    bare = Site(site.web, site.pyodide, site.vendor, site.wheels, site.snapshots, None)
    assert bare.models.listing() == []
    assert bare.find("models/tiny/manifest.json") is None


def test_a_checkout_without_pyodide_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.site.DIST", tmp_path)
    with pytest.raises(SiteError, match=r"lacks pyodide.mjs, .*Run: make setup"):
        Site.of_checkout()


# ---- compressed variants


def test_variants_are_made_once_and_only_where_they_pay(variants: VariantStore) -> None:
    made = variants.make("some-hash", SCRIPT)
    assert brotli.decompress(made["br"].read_bytes()) == SCRIPT
    assert variants.make("some-hash", b"not looked at") == made == variants.find("some-hash")
    assert variants.make("tiny", b"too short to shrink") == {}


def test_compressing_is_reproducible() -> None:
    for encoding in ("br", "gzip"):
        assert compress(encoding, SCRIPT) == compress(encoding, SCRIPT)


# ---- the static build


def test_the_build_holds_what_the_server_answers(
    site: Site, variants: VariantStore, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    build(site, out, variants)
    written = contents(out)
    for url in site.urls():
        resource = site.find(url)
        assert resource
        assert written.pop(url) == resource.read()
    assert brotli.decompress(written["app.js.br"]) == SCRIPT
    siblings = {name for name in written if name.endswith((".br", ".gz"))}
    assert set(written) - siblings == {"_headers", ".nojekyll", ".inpage-build"}
    assert not any(b"not for the web" in data for data in contents(out).values())
    assert not any("secret" in name or "hidden" in name for name in contents(out))


def test_the_headers_file(site: Site, variants: VariantStore, tmp_path: Path) -> None:
    build(site, tmp_path / "out", variants)
    rules = (tmp_path / "out" / "_headers").read_text()
    for name, value in SECURITY_HEADERS.items():
        assert f"\n  {name}: {value}\n" in rules.split("/pyodide/*")[0]
    sandbox = (
        "/models/*\n  Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; sandbox"
    )
    assert f"{sandbox}\n" in rules
    assert "/assets/*\n  Cache-Control: public, max-age=31536000, immutable\n" in rules


def test_with_the_hub_the_page_may_connect_to_it_and_nothing_else_changes(
    site: Site, variants: VariantStore, tmp_path: Path
) -> None:
    own = "connect-src 'self'"
    with_hub = Site(
        *(site.web, site.pyodide, site.vendor, site.wheels, site.snapshots, site.models.root),
        hub=HUB_ORIGINS,
    )
    policy, strict = (s.headers["Content-Security-Policy"] for s in (with_hub, site))
    assert f"{own}; " in strict
    assert policy == strict.replace(own, f"{own} {' '.join(HUB_ORIGINS)}")
    described = with_hub.describe()
    assert described["hub"] == "https://huggingface.co"
    assert described["headers"]["content-security-policy"] == policy
    assert with_hub.headers_of("models/x/y")["Content-Security-Policy"].startswith("default-src 'n")
    build(with_hub, tmp_path / "out", variants)
    assert policy in (tmp_path / "out" / "_headers").read_text()


@pytest.mark.parametrize(
    ("arguments", "hub"),
    [
        ([], HUB_ORIGINS),
        (["--no-hub"], ()),
        (["build", "x"], HUB_ORIGINS),
        (["build", "x", "--no-hub"], ()),
        (["--hub", "http://127.0.0.1:1", "https://*.example.org"],
         ("http://127.0.0.1:1", "https://*.example.org")),
    ],
)  # fmt: skip
def test_whether_and_which_hub(arguments: list[str], hub: tuple[str, ...]) -> None:
    assert tuple(parse(arguments).hub) == hub


@pytest.mark.parametrize(
    "address", ["example.org", "https://x; script-src *", "https://x/y", "'self'"]
)
def test_what_is_no_address_of_a_hub(address: str) -> None:
    with pytest.raises(SystemExit):
        parse(["--hub", address])


def test_a_former_build_is_replaced(site: Site, variants: VariantStore, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()  # an empty folder will do too
    build(site, out, variants)
    (out / "stale.js").write_text("from a former version")
    build(site, out, variants)
    assert "stale.js" not in contents(out)
    assert [path.name for path in tmp_path.glob(".out*")] == []


def test_someone_elses_folder_is_refused(
    site: Site, variants: VariantStore, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    with pytest.raises(BuildError, match="holds something other than an earlier build"):
        build(site, out, variants)
    assert contents(out) == {"thesis.txt": b"years of work"}
    with pytest.raises(BuildError, match="is a file"):
        build(site, out / "thesis.txt", variants)


def test_a_build_that_fails_leaves_the_former_one(
    site: Site, variants: VariantStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    build(site, out, variants)
    before = contents(out)
    monkeypatch.setattr(site, "find", lambda url: None)
    with pytest.raises(BuildError, match=r"site.json vanished or became unreadable"):
        build(site, out, variants)
    assert contents(out) == before
    assert [path.name for path in tmp_path.glob(".out*")] == []


@pytest.mark.built
def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    command = [sys.executable, "serve.py", "build", str(tmp_path)]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert outcome.returncode == 1
    assert outcome.stderr == (
        f"inpage: {tmp_path} holds something other than an earlier build; choose another folder\n"
    )


@pytest.mark.built
def test_this_checkouts_static_build_equals_what_the_server_sends(
    site_url: str, static_site: Path, static_site_url: str
) -> None:
    for url in Site.of_checkout().urls():
        path = urllib.parse.quote(url)
        with (
            urllib.request.urlopen(site_url + path) as live,
            urllib.request.urlopen(static_site_url + path) as static,
        ):
            sent, written = live.read(), (static_site / url).read_bytes()
            assert static.read() == written
        if url == "site.json":
            described = json.loads(sent)
            assert described.pop("device"), "as tests/conftest.py asks the server for"
            assert described == json.loads(written)
        else:
            assert sent == written


def test_site_json_lists_what_a_release_is_made_of(site: Site) -> None:
    described = site.describe()
    of_models = {"models.json", *(url for url in site.urls() if url.startswith("models/"))}
    rare = {f"pyodide/{site.pyodide_folder}/rare-1-any.whl"}
    assert set(described["files"]) == set(site.urls()) - of_models - rare - {"site.json"}
    for url, sha256 in described["files"].items():
        resource = site.find(url)
        assert resource
        assert hashlib.sha256(resource.read()).hexdigest() == sha256
    assert site.describe() == described
    (site.web / "app.js").write_bytes(SCRIPT + b"\n")
    assert site.describe()["release"] != described["release"]


def test_the_service_worker_sends_the_servers_headers(site: Site) -> None:
    script = """
    const fs = require("fs"), vm = require("vm");
    const source = fs.readFileSync("web/sw.js", "utf8");
    const page = new Response("", { headers: { "Referrer-Policy": "origin" } });
    const world = { self: { addEventListener() {} }, Response };
    const answer = vm.runInNewContext(source + "; withHeaders", world);
    const { headers } = answer(page, JSON.parse(process.argv[1]));
    console.log(JSON.stringify(Object.fromEntries(headers)));
    """
    described = json.dumps(site.describe())
    command = ["node", "--input-type=commonjs", "-e", script, described]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = {name.lower(): text for name, text in SECURITY_HEADERS.items()}
    assert json.loads(outcome.stdout).items() >= wanted.items()


def test_the_server_says_which_models_it_found(site: Site, tmp_path: Path) -> None:
    (head, *models) = models_found(site)
    assert head == f"models in {site.models.root}:"
    assert [line.split(",")[0].strip() for line in models] == [
        entry["name"] for entry in site.models.listing()
    ]
    mine = tmp_path / "mine"
    mine.mkdir()
    site.models = Models(mine)
    assert models_found(site) == [f"there are no models in {mine.resolve()} yet"]
    (mine / "mine-00001-of-00002.gguf").write_bytes(b"GGUF")
    (mine / "other.gguf").write_bytes(bytes(1_234_567))
    (_, *models) = models_found(site)
    assert models[0].startswith("  mine, cannot be loaded: mine-00002-of-00002.gguf is missing")
    assert models[1] == "  other, 1.2 MB"


def test_what_few_import_is_served_but_kept_by_no_browser(site: Site) -> None:
    wheel = f"pyodide/{site.pyodide_folder}/rare-1-any.whl"
    assert site.find(wheel)
    assert wheel in set(site.urls()) - site.describe()["files"].keys()


@pytest.mark.parametrize("frame", ["runner.html", "preview.html"])
def test_what_answers_hold_runs_in_a_frame_that_may_connect_to_nothing(
    site: Site, frame: str
) -> None:
    policy = site.headers_of(frame)["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none';")
    assert "connect-src" not in policy
    assert "'self'" not in policy.replace("frame-ancestors 'self'", "")


def test_servers_of_tools_are_asked_from_a_frame_with_a_policy_of_its_own(site: Site) -> None:
    assert "connect-src 'self';" in site.headers["Content-Security-Policy"]
    policy = site.headers_of("connector.html")["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; connect-src http: https:;")
    assert "frame-ancestors 'self'" in policy
