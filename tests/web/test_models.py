"""The panel behind the chip: what is in use, what else there is; load, switch, delete."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.conftest import serving
from tests.web.user import User

pytestmark = pytest.mark.browser

TOO_LARGE = 1 << 50  # bytes


@pytest.fixture(scope="module")
def models(toy_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three, one of them too large for any GPU."""
    models = tmp_path_factory.mktemp("three")
    for name in ("Toy", "Other", "Vast"):
        folder = models / name
        shutil.copytree(toy_model, folder)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["name"] = name
        if name == "Vast":
            manifest["requires"]["limits"]["max_buffer_size"] = TOO_LARGE
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return models


@pytest.fixture(scope="module")
def address(models: Path) -> Iterator[str]:
    """Serve a site with these models."""
    with serving("--models", str(models)) as address:
        yield address


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[User]:
    context = browser.new_context()
    user = User(context.new_page(), url)
    user.open()
    yield user
    context.close()


@pytest.fixture(scope="module")
def user(browser: Browser, address: str) -> Iterator[User]:
    with opened(browser, address) as user:
        yield user


@pytest.fixture(scope="module")
def gpu_user(browser: Browser, address: str) -> Iterator[User]:
    """Open a page on the GPU, where no model is loaded."""
    with opened(browser, f"{address}?device=gpu") as user:
        yield user


@contextmanager
def panel_of(user: User) -> Iterator[Locator]:
    """Open; closed at the end."""
    user.page.locator("#modelChip").click()
    panel = user.page.get_by_role("dialog", name="Models")
    expect(panel).to_be_visible()
    yield panel
    user.page.evaluate("document.querySelector('#models').close()")


@pytest.fixture
def panel(user: User) -> Iterator[Locator]:
    with panel_of(user) as panel:
        yield panel


@pytest.fixture
def gpu_panel(gpu_user: User) -> Iterator[Locator]:
    with panel_of(gpu_user) as panel:
        yield panel


def row(panel: Locator, name: str) -> Locator:
    return panel.locator(":is(#storedRows, #modelRows) li").filter(
        has=panel.page.get_by_text(name, exact=True)
    )


def test_plain_words_come_first(gpu_user: User, gpu_panel: Locator) -> None:
    panel = gpu_panel
    expect(panel).to_contain_text("often wrong")
    expect(panel.get_by_text("No graphics card is in use").last).to_be_visible()
    expect(panel.get_by_text("Models run on your graphics card")).to_be_hidden()
    expect(row(panel, "Toy").locator(".words")).to_contain_text("small and fast · ")
    expect(row(panel, "Toy").locator(".words")).to_contain_text("remembers about ")
    facts = row(panel, "Toy").locator(".facts")
    expect(facts).to_be_hidden()
    row(panel, "Toy").locator("summary").click()
    expect(facts).to_contain_text("context of ")
    assert gpu_user.faults_of_access() == []


def test_what_fits_this_gpu_and_what_does_not(gpu_panel: Locator) -> None:
    panel = gpu_panel
    expect(row(panel, "Toy")).to_contain_text("· fits")
    expect(row(panel, "Vast")).not_to_contain_text("· fits")
    expect(row(panel, "Vast").locator(".fit")).to_contain_text("Too large for this GPU")
    expect(panel.get_by_role("button", name="Use Vast")).to_be_disabled()


# In this order: what one test loads or keeps, the next ones have ---------------------------------


def test_a_model_is_loaded_and_another_one_takes_its_place(user: User, panel: Locator) -> None:
    panel.get_by_role("button", name="Use Toy").click()
    expect(panel).to_be_hidden()
    user.has_loaded()
    for name, other in (("Toy", "Other"), ("Other", "Toy")):
        user.page.locator("#modelChip").click()
        expect(panel.locator("#loadedName")).to_have_text(name)
        expect(panel.locator("#loadedPlain")).to_contain_text("· stored in this browser")
        expect(row(panel, name)).to_have_count(0)  # it is listed once
        row(panel, other).locator(".load").click()
        expect(user.page.locator("#modelName")).to_have_text(other)
        user.has_loaded()
    user.page.locator("#modelChip").click()
    expect(panel.get_by_role("button", name="Use Other")).to_be_enabled()
    assert user.faults_of_access() == []


def test_this_machine_shows_the_kernels_and_what_chose_them(user: User, panel: Locator) -> None:
    facts = panel.locator("#kernelFacts li")
    context = "Memory of the context: 32 bits · by what the device says of itself"
    expect(facts).to_have_text(["Kernels: cpu · by what the device says of itself", context])
    user.page.evaluate("""async () => {
        const { emit } = await import("/ui/events.js");
        const measured = [{ kernels: "floats", one_token_us: 61.5, many_tokens_us: 1826 }];
        const chosen = { name: "memory", wide: true, one_token: "f32", chosen: "measured" };
        const own = { ...inpage.loaded.kernels };
        Object.assign(inpage.loaded.kernels, chosen, { measured });
        emit("modelchange");
        Object.assign(inpage.loaded.kernels, own, { measured: [] });
    }""")
    expect(facts).to_have_text(
        [
            "Kernels: memory · measured just now",
            "one token by floats · several tokens by bytes, in 15 bits",
            context,
            "A layer by floats: 61.5 µs for one token, 1,826 µs for 256.",
        ]
    )


def test_the_context_is_kept_as_the_settings_or_a_load_say(user: User) -> None:
    def kept(options: str = "{}") -> object:
        load = f"inpage.load('Toy', {options})"
        return user.page.evaluate(f"{load}.then(({{ kv }}) => kv, (error) => error.param)")

    def choose(kv: str) -> None:
        user.page.locator("header [data-opens=settings]").click()
        if not user.page.locator("#advanced[open]").count():
            user.page.get_by_text("Advanced", exact=True).click()
        user.page.get_by_label("Memory of the context").select_option(kv)
        user.page.get_by_role("button", name="Done").click()

    choose("q8")
    assert kept() == {"type": "q8", "chosen": "asked for"}
    facts = user.page.locator("#kernelFacts li")
    expect(facts.nth(1)).to_have_text("Memory of the context: 8 bits · asked for")
    assert kept("{ kv: 'q4' }") == {"type": "q4", "chosen": "asked for"}
    assert kept("{ kv: 'q9' }") == "kv"
    choose("")
    assert kept() == {"type": "f32", "chosen": "usual"}


def test_a_list_that_nobody_answers_for_stands(user: User) -> None:
    """The engine may be started anew while it is asked."""
    user.page.evaluate("""async () => {
        const {loadFrom} = await import("/ui/models/models.js");
        const {models, stored} = inpage;
        inpage.models = inpage.stored = () => Promise.reject(new Error("it has ended"));
        await loadFrom("models/Toy/", "Toy");
        await new Promise(resolve => setTimeout(resolve)); // nobody waits for the list
        Object.assign(inpage, {models, stored});
    }""")
    expect(user.page.locator("#model option")).to_have_text(["Other", "Toy", "Vast"])
    assert user.complaints == []


def test_only_a_download_can_be_paused(user: User, panel: Locator) -> None:
    """Nothing else that is loaded meanwhile changes that."""
    words = user.page.evaluate("""async () => {
        const {loadModel} = await import("/ui/models/panel.js");
        const {loadFrom} = await import("/ui/models/models.js");
        const {load} = inpage;
        const begun = [];
        inpage.load = () => new Promise(end => begun.push(end));
        const words = [];
        const say = () => words.push(document.querySelector("#cancelLoad").textContent);
        const loads = [];
        for (const begin of [
            () => loadModel("models/Other/", "Other", true),
            () => loadModel("models/Toy/", "Toy", true),
            () => loadFrom([], "a file"),
        ]) {
            loads.push(begin());
            say();
        }
        for (const end of begun) end({});
        await Promise.all(loads);
        say();
        Object.assign(inpage, {load});
        return words;
    }""")
    assert words == ["Pause", "Pause", "Cancel", "Cancel"]


def test_a_deletion_that_fails_keeps_no_other_from_being_done(user: User, panel: Locator) -> None:
    user.page.evaluate("""() => {
        Object.assign(globalThis, {deleted: [], listings: 0, own: inpage.deleteStored});
        inpage.deleteStored = async url => {
            if (deleted.push(url) === 1) throw new Error("another tab has deleted it");
        };
        addEventListener("modelslisted", () => listings++);
    }""")
    for name in ("Other", "Toy"):
        panel.get_by_role("button", name=f"Delete {name}").click()
    user.page.keyboard.press("Escape")
    expect(user.notices).to_contain_text("Other was not deleted: another tab has deleted it.")
    user.page.wait_for_function("() => listings")
    deleted = user.page.evaluate("deleted")
    assert [url.rstrip("/").rsplit("/")[-1] for url in deleted] == ["Other", "Toy"]
    user.page.evaluate("() => { inpage.deleteStored = own; }")
    user.dismiss_notices()
    assert user.complaints == []


def test_a_deletion_can_be_undone(user: User, panel: Locator) -> None:
    words = row(panel, "Other").locator(".words")
    panel.get_by_role("button", name="Delete Other").click()
    expect(words).to_have_text("will be deleted when you close this window.")
    panel.get_by_role("button", name="Keep Other").click()
    expect(words).to_contain_text("small and fast")
    panel.get_by_role("button", name="Delete Other").click()
    user.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    user.page.locator("#modelChip").click()
    expect(panel.locator("#modelRows").get_by_role("button", name="Use Other")).to_be_visible()
    names = user.page.evaluate("inpage.stored().then((all) => all.map(({ name }) => name))")
    assert names == ["Toy"]


def test_little_room_is_told(user: User, panel: Locator) -> None:
    user.page.keyboard.press("Escape")
    user.page.evaluate("navigator.storage.estimate = async () => ({ quota: 1000, usage: 0 })")
    user.page.locator("#modelChip").click()
    expect(row(panel, "Other").locator(".fit")).to_contain_text("1.0 kB of storage left")
    assert user.complaints == []


@pytest.mark.thorough  # three more loads
def test_models_that_share_a_name_are_told_apart(user: User, models: Path, panel: Locator) -> None:
    """The list has their folders' names; what is loaded calls itself as its manifest does."""
    shutil.copytree(models / "Toy", models / "Twin", dirs_exist_ok=True)
    user.page.evaluate("inpage.load('models/Toy/').then(() => null)")
    for used, other in (("Toy", "Twin"), ("Twin", "Toy")):
        user.page.reload()  # the model of the last visit loads by itself
        user.has_opened()
        user.has_loaded()
        assert user.page.evaluate("inpage.loaded.name") == "Toy"
        user.page.locator("#modelChip").click()
        expect(row(panel, other)).to_have_count(1)
        expect(row(panel, used)).to_have_count(0)
        row(panel, other).locator(".load").click()
        expect(panel).to_be_hidden()
        user.has_loaded()
