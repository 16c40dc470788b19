"""Packages that cells import: from this site's own Pyodide, else as pure wheels where allowed."""

from collections.abc import Sequence

from py_runtime.base.errors import InpageError


class PackageError(InpageError):
    """An error of a package that cannot be had here; it says what to do."""

    code = "invalid_request"


async def fetch_imports(code: str) -> None:
    """Fetch what the code imports and this site has, say matplotlib; a syntax error is not ours."""
    from pyodide.code import find_imports

    try:
        names = find_imports(code)
    except SyntaxError:
        return
    wanted = {found for name in names if (found := _package_of(name))}
    if wanted:
        await _load(sorted(wanted))


async def install(wanted: Sequence[str]) -> None:
    """Do what `%pip install` says."""
    ours = [name for name in wanted if name.lower() in _known()]
    others = [name for name in wanted if name not in ours]
    if ours:
        await _load([name.lower() for name in ours])
        print(f"From this site: {', '.join(ours)}")
    if not others:
        return
    await _load(["micropip"])
    import micropip

    try:
        await micropip.install(others)
    except (OSError, ValueError) as error:
        raise PackageError(
            f"{', '.join(others)} cannot be installed here ({_first_line(error)}). Pure Python "
            "packages come from pypi.org where this site lets its page connect to it; wheels that "
            "lie on this site always do: %pip install and the wheel's address"
        ) from None
    print(f"Installed: {', '.join(others)}")


def missing_words(error: ModuleNotFoundError) -> str:
    """Say what to do about a module that is not here."""
    name = (error.name or "").partition(".")[0]
    if name in _known():
        return f"Write `import {name}` in a cell of its own, or `%pip install {name}`."
    return (
        f"Nothing here is called {name}. If it is a pure Python package, `%pip install {name}` "
        "fetches it where this site allows that; what needs a compiler is here only if this site "
        f"has it: {', '.join(sorted(_known()))}."
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _known() -> dict[str, str]:
    """Return the packages of this site's Pyodide: name → first module."""
    import pyodide_js

    found = pyodide_js.lockfile.packages.to_py()
    return {name: (entry.get("imports") or [name])[0] for name, entry in found.items()}


def _package_of(module: str) -> str | None:
    """Return the package of this site's that has a module, unless it can be imported already."""
    import importlib.util

    import pyodide_js

    top = module.partition(".")[0]
    try:
        if importlib.util.find_spec(top):
            return None
    except (ImportError, ValueError):
        return None
    for name, entry in pyodide_js.lockfile.packages.to_py().items():
        if top in entry.get("imports", [name]):
            return str(name)
    return None


async def _load(names: Sequence[str]) -> None:
    import pyodide_js
    from pyodide.ffi import to_js

    def quiet(_: str) -> None:
        pass

    await pyodide_js.loadPackage(to_js(list(names)), messageCallback=quiet)
