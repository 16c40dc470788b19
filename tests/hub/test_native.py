"""Models on the Hub natively: fetched with resume and hashes, kept, loaded without the network."""

import hashlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import InpageError, QuotaError
from py_runtime.base.progress import Meter
from py_runtime.download import download, retries
from py_runtime.model import Model
from py_runtime.model.hub_store import HubStore, hub_store
from py_runtime.model.stores import open_store
from tests.gguf import small
from tests.gguf.written import file
from tests.hub.imitation import (
    COMMIT,
    CUT,
    CUT_ONCE,
    EXPIRED_ONCE,
    TOKEN,
    WRONG,
    Imitation,
)
from tests.runners import NativeRunner, wait
from tools.files import ROOT

NAME = "toys/small-GGUF"
PROMPT = [5, 100, 7, 200, 31]


@pytest.fixture(autouse=True)
def cache(hub: Imitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", hub.hub)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    hub.repositories, hub.faults, hub.status, hub.ranges = {}, {}, None, True
    hub.put(NAME, small_Q8_0__gguf=small.small_file(), small_F16__gguf=f16())
    hub.take_seen()
    yield tmp_path / "inpage" / "hub"
    hub.status = None


def f16() -> bytes:
    return file(small.metadata(), small.tensors("F16"))


def fetched(where: str = f"hf:{NAME}", meter: Meter | None = None) -> HubStore:
    store: HubStore = wait(hub_store(where))
    wait(store.open(meter))
    return store


def kept(cache: Path, data: bytes) -> Path:
    return cache / f"file-{hashlib.sha256(data).hexdigest()}"


def refused(where: str = f"hf:{NAME}") -> str:
    with pytest.raises(InpageError) as caught:
        fetched(where)
    return str(caught.value)


def test_it_is_loaded_then_kept_and_the_commit_is_pinned(
    hub: Imitation, cache: Path, native: NativeRunner, tmp_path: Path
) -> None:
    (tmp_path / "x.gguf").write_bytes(small.small_file())
    own = wait(Model.load(native.device, str(tmp_path / "x.gguf")))
    wanted = wait(own.prefill(PROMPT))
    own.unload()
    told: list[Any] = []
    model = wait(Model.load(native.device, f"hf:{NAME}", lambda *step: told.append(step)))
    np.testing.assert_array_equal(wait(model.prefill(PROMPT)), wanted)
    assert (model.manifest.name, model.manifest.quantisation) == ("small_Q8_0", "Q8_0")
    assert model.manifest.source.name == NAME
    assert model.manifest.source.licence == "apache-2.0"
    model.unload()
    size = len(small.small_file())
    assert ("download", size, size) in told
    assert kept(cache, small.small_file()).read_bytes() == small.small_file()
    assert all("Signature" in seen.path for seen in hub.seen if seen.host == "cdn")
    asked = [seen.path for seen in hub.seen if "/resolve/" in seen.path]
    assert {path.split("/resolve/")[1] for path in asked} == {f"{COMMIT}/small_Q8_0.gguf"}
    hub.take_seen()
    hub.status = 500  # and whatever the Hub has by now
    for where in (f"hf:{NAME}", f"hf:{NAME}/small_Q8_0.gguf", f"hf:{NAME}@{COMMIT}"):
        fetched(where)
    assert hub.seen == []


def test_another_file_and_another_revision(hub: Imitation, cache: Path) -> None:
    hub.repositories[NAME].revisions["v1"] = "f" * 40
    store = fetched(f"hf:{NAME}/small_F16.gguf@v1")
    assert wait(store.manifest()).quantisation == "F16"
    assert any(f"/resolve/{'f' * 40}/small_F16.gguf" in seen.path for seen in hub.take_seen())
    fetched(f"hf:{NAME}@v1")
    fetched(f"hf:{NAME}@{'f' * 40}")
    assert hub.seen == [], "a branch stays at the commit that is kept"
    fetched(f"hf:{NAME}@main")
    assert kept(cache, small.small_file()).is_file()


def test_parts_come_together(hub: Imitation) -> None:
    tensors = small.tensors()
    split = {"split.count": 2, "split.tensors.count": len(tensors)}
    hub.repositories[NAME].files = {
        "q8/big-Q8_0-00001-of-00002.gguf": file(
            small.metadata() | split | {"split.no": 0}, tensors[:5]
        ),
        "q8/big-Q8_0-00002-of-00002.gguf": file(split | {"split.no": 1}, tensors[5:]),
    }
    store = fetched()
    assert (store.name, len(wait(store.opened_sources()))) == ("big-Q8_0", 2)


def test_a_cut_connection_goes_on_where_it_was(hub: Imitation, cache: Path) -> None:
    hub.faults["small_Q8_0.gguf"] = CUT_ONCE
    fetched()
    ranges = [seen.headers.get("range") for seen in hub.seen if seen.host == "cdn"]
    assert ranges[-2:] == [None, f"bytes={len(small.small_file()) // 2}-"]
    assert kept(cache, small.small_file()).is_file()


def test_a_download_that_broke_off_goes_on_another_time(hub: Imitation, cache: Path) -> None:
    hub.faults["small_Q8_0.gguf"] = CUT
    hub.ranges = False  # so that each try begins anew, and brings no more
    assert "broke off after" in refused()
    (begun,) = cache.glob("begun-*")
    there = begun.stat().st_size
    assert 0 < there < len(small.small_file())
    hub.faults, hub.ranges = {}, True
    hub.take_seen()
    told: list[Any] = []
    fetched(meter=Meter(lambda *step: told.append(step)))
    assert told[0] == ("download", there, len(small.small_file()))
    cdn = [seen.headers.get("range") for seen in hub.seen if seen.host == "cdn"]
    assert cdn[-1] == f"bytes={there}-"
    assert not any("/api/" in seen.path for seen in hub.seen), "its commit is known"
    assert kept(cache, small.small_file()).read_bytes() == small.small_file()


def test_a_full_disk_is_told_and_the_download_goes_on_once_there_is_room(
    hub: Imitation, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing the file fails, too: the bytes that found no room are still in its buffer."""
    monkeypatch.setattr(download, "READ_BYTES", 10_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, hard))  # bytes of a file
    try:
        assert "cannot be written: File too large" in refused()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (begun,) = cache.glob("begun-*")
    assert begun.stat().st_size == 9_000
    fetched()
    assert kept(cache, small.small_file()).read_bytes() == small.small_file()


def test_storage_that_fills_up_on_the_way_is_told(
    hub: Imitation, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write(partial: object, block: np.ndarray) -> None:
        raise QuotaError("0 of 16384 bytes could be written")

    monkeypatch.setattr("py_runtime.hub.native_shelf._Partial.write", write)
    told = refused()
    assert "small_Q8_0.gguf stopped at 0 bytes of" in told
    assert "storage is full (0 of 16384 bytes could be written)" in told
    assert "delete models that are kept" in told


def test_the_address_of_a_page_is_a_model_too(hub: Imitation, cache: Path) -> None:
    store = wait(open_store(f"https://huggingface.co/{NAME}"))
    wait(store.open())
    assert kept(cache, small.small_file()).is_file()


def test_an_expired_address_is_asked_for_anew(hub: Imitation, cache: Path) -> None:
    store = wait(hub_store(f"hf:{NAME}"))
    wait(store.manifest())
    hub.faults["small_Q8_0.gguf"] = EXPIRED_ONCE
    wait(store.open())
    assert kept(cache, small.small_file()).is_file()


def test_wrong_bytes_are_not_kept(hub: Imitation, cache: Path) -> None:
    hub.faults["small_Q8_0.gguf"] = WRONG
    assert "is not the file that the Hub lists: its sha256 is" in refused()
    assert not [*cache.glob("file-*"), *cache.glob("begun-*")]


def test_a_begun_file_with_wrong_bytes_is_dropped(hub: Imitation, cache: Path) -> None:
    """Its hash shows it once the rest has come: then the whole file comes, unasked."""
    cache.mkdir(parents=True)
    sha256 = hashlib.sha256(small.small_file()).hexdigest()
    (cache / f"begun-{sha256}").write_bytes(b"wrong" * 96)
    fetched()
    ranges = [seen.headers.get("range") for seen in hub.seen if seen.host == "cdn"]
    assert ranges[-2:] == ["bytes=480-", None]
    assert kept(cache, small.small_file()).read_bytes() == small.small_file()
    (cache / f"file-{sha256}").rename(cache / f"begun-{sha256}")
    with (cache / f"begun-{sha256}").open("ab") as begun:
        begun.write(b"more than there is")
    fetched()
    assert kept(cache, small.small_file()).read_bytes() == small.small_file()


def test_what_cannot_be_loaded_is_refused_before_it_comes(hub: Imitation, cache: Path) -> None:
    data = small.small_file(**{"llama.expert_count": 8})
    hub.repositories[NAME].files = {"moe-Q8_0.gguf": data}
    store = wait(hub_store(f"hf:{NAME}"))
    with pytest.raises(InpageError, match="mixtures of experts"):
        wait(store.manifest())
    assert not list(cache.glob("*"))


def test_a_gated_model_takes_a_token_that_the_cdn_never_sees(
    hub: Imitation, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repositories[NAME].gated = True
    assert "needs a token of yours" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert "does not accept the token" in refused()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.repositories[NAME].terms_accepted = False
    assert "accept its terms" in refused()
    hub.repositories[NAME].terms_accepted = True
    hub.take_seen()
    fetched()
    assert any(seen.headers.get("authorization") == f"Bearer {TOKEN}" for seen in hub.seen)
    assert not any("authorization" in seen.headers for seen in hub.seen if seen.host == "cdn")
    assert not any(TOKEN in seen.path for seen in hub.seen)
    assert not any(TOKEN.encode() in path.read_bytes() for path in cache.glob("model-*"))


def test_names_that_lead_nowhere(hub: Imitation) -> None:
    assert "check the name" in refused("hf:toys/absent")
    assert "has no such revision: toys/small-GGUF@v9" in refused(f"hf:{NAME}@v9")
    assert "has no absent.gguf; it has: small_Q8_0.gguf" in refused(f"hf:{NAME}/absent.gguf")
    hub.status = 429
    assert "asked too often from here: wait 30 seconds" in refused()


@pytest.mark.long
def test_the_terminal_looks_into_a_file_without_fetching_it(hub: Imitation, cache: Path) -> None:
    command = [sys.executable, "-m", "inpage", "inspect", f"hf:{NAME}"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "small\\_Q8\\_0.gguf" in told.stdout or "small_Q8_0.gguf" in told.stdout
    assert "It can be loaded" in told.stdout
    hub.status = 404
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (told.returncode, told.stderr.count("\n")) == (1, 1)
    assert told.stderr.startswith(f"inpage: hf:{NAME}: the Hub has no {NAME}; check the name")
