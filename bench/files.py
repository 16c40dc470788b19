"""The bench's files by the URL they have beside the site: pages, peers, their models."""

from pathlib import Path

from bench.engines import GGUF
from export.default_model import default_gguf
from tools.errors import UserError
from tools.files import ROOT
from tools.site import files_in

BENCH = ROOT / "bench"
PAGES = BENCH / "pages"
PEER_MODELS = BENCH / "build" / "models"
MODULES = BENCH / "node_modules"

PEERS = "peers"  # the folder whose pages do not get the product's security headers
OWN_SCRIPTS = ("common.js", "inpage.js")
PEER_PAGES = (
    "common.js",
    "gpu_memory.js",
    "probe.html",
    "probe.js",
    "transformers.html",
    "transformers.js",
    "wllama.html",
    "wllama.js",
)
# URL below peers/ → the file of a package
LIBRARIES = {
    "transformers/transformers.min.js": "@huggingface/transformers/dist/transformers.min.js",
    **{
        f"onnxruntime/{name}": f"onnxruntime-web/dist/{name}"
        for name in (
            "ort-wasm-simd-threaded.asyncify.mjs",
            "ort-wasm-simd-threaded.asyncify.wasm",
        )
    },
    "wllama/index.js": "@wllama/wllama/esm/index.js",
    "wllama/wasm/wllama.wasm": "@wllama/wllama/esm/wasm/wllama.wasm",
}

Files = dict[str, Path | bytes]


def bench_files(with_peers: bool) -> Files:
    """Return files on disk, or bytes made here, by URL; UserError where one is missing."""
    files: Files = {"bench-inpage.html": own_page((ROOT / "web" / "index.html").read_text())}
    files |= {f"bench/{name}": PAGES / name for name in OWN_SCRIPTS}
    files |= {f"{PEERS}/{name}": PAGES / name for name in PEER_PAGES}
    if with_peers:
        files |= {f"{PEERS}/{url}": MODULES / path for url, path in LIBRARIES.items()}
        files |= {f"{PEERS}/models/{url}": PEER_MODELS / url for url in files_in(PEER_MODELS)}
        files[f"{PEERS}/models/{GGUF}"] = default_gguf()
    absent = [path for path in files.values() if isinstance(path, Path) and not path.is_file()]
    if absent:
        raise UserError(f"{absent[0]} is missing. Run: make bench")
    return files


def own_page(page: str) -> bytes:
    """Return the product's page, with the script that drives it."""
    script = '  <script type="module" src="bench/inpage.js"></script>\n</head>'
    if page.count("</head>") != 1:
        raise UserError("web/index.html has no single </head> to put the bench's script before")
    return page.replace("</head>", script).encode()
