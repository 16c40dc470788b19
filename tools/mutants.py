"""Changes of one token in py_runtime, each of which the tests should notice.

A sample is drawn by a seed: `python -m tools.mutants --seed 1 --count 100`. A change is drawn for
its own sake, so a sample stays the same but for the lines that were edited since. Each change is
made in a copy of the checkout, and those native tests of its room that call the changed function
run there until one fails. Not drawn: what no test can notice by nature, such as the texts of errors
and constants that are a named limit (`MAX_DEPTH = 64`: 65 would do as well). A change that takes
more than 4 GiB or does not end is noticed.
"""

import argparse
import ast
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from tools.files import ROOT
from tools.nearest_first import CALLS, ORDER, Calls, nearest

T = TypeVar("T")
R = TypeVar("R")

PACKAGE = "py_runtime"
PASSED, NONE_SELECTED = 0, 5  # exit statuses of pytest
MIN_SHARE = 0.9
NATIVE = "not browser and not built and not model"
ROOM_TESTS = {  # where the folder of a room's name does not have all its tests
    "app": [
        *("app", "generation", "model", "inpage", "web/test_wording.py", "tools/test_browser.py"),
    ],
    "base": ["base", "folder", "graph", "generation"],
    "chat": ["chat", "generation/test_tools.py", "generation/test_messages.py"],
    "decoder": ["decoder", "program", "gguf/test_config.py", "gguf/test_rows.py"],
    "download": ["download", "hub/test_native.py", "hub/test_hosts.py"],
    "folder": ["folder", "model", "export/test_model_writer.py"],
    "gpu": ["gpu", "graph", "generation"],
    "grammar": ["grammar", "generation/test_options.py"],
    "graph": ["graph", "dynamic_shape", "generation"],
    "live": ["live", "graph", "dynamic_shape", "ops"],
    "model": [
        *("model", "folder", "generation", "pte/test_chat.py", "gguf/test_models.py"),
        *("hub/test_native.py", "hub/test_hosts.py"),
    ],
    "ops": ["ops", "dynamic_shape", "pte_ops"],
    "passes": ["passes", "export/test_passes.py", "decoder/test_program.py"],
    "program": [
        *("program", "passes", "graph", "gguf/test_planes.py", "export/test_model_writer.py"),
        "folder/test_native_loading.py",
    ],
    "pte": ["pte", "pte_ops"],
    "sampling": ["sampling", "generation"],
    "tokens": ["tokens", "chat/test_seams.py", "gguf/test_tokenizer.py"],
    "weights": ["weights", "folder", "pte/test_files.py", "gguf/test_constants.py"],
}
# A change or a busy machine may slow the tests down this much; beyond it they hang, and notice.
PATIENCE, PATIENCE_SECONDS = 4, 60
IN_THE_PAGE = ("inpage_bridge", "js", "pyodide", f"{PACKAGE}.bridge")  # modules
GUARDS = ("strict", "maxsize", "copy")  # keywords that change no result

TURNED: dict[type[ast.AST], Any] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult},
}


Change = tuple[Any, str, Any]  # (node, field, what stands there instead)


@dataclass(frozen=True)
class Mutant:
    """A file with one change, and the change for people."""

    file: str
    line: int
    shown: str
    source: str
    changed: str  # the function, as FILE:LINE, or FILE where the change is in none


def function_around(tree: ast.AST, line: int) -> int | None:
    """Return the first line, as Python counts it, of the innermost function that has this line."""
    found = None
    for node in ast.walk(tree):  # from the outside in
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if is_within(node, line):
                found = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return found


def is_within(node: ast.stmt, line: int) -> bool:
    """Return whether the statement has this line."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def sample(sources: dict[str, str], seed: int, count: int) -> list[Mutant]:
    """Draw so many of all changes of these files; the same ones for the same seed."""
    drawn = sorted(
        (hashlib.sha256(f"{seed} {name}".encode()).digest(), file, place)
        for file, source in sources.items()
        for place, name in enumerate(names_of_changes(file, source))
    )
    return [mutant_of(file, sources[file], place) for _, file, place in drawn[:count]]


def names_of_changes(file: str, source: str) -> Iterator[str]:
    """Yield the names in order; each is unique in its file, and lines above do not change it."""
    lines, seen = source.splitlines(), Counter[str]()
    for node, field, _ in changes(ast.parse(source)):
        name = f"{file} {lines[node.lineno - 1].strip()} {ast.unparse(node)} {field}"
        seen[name] += 1
        yield f"{name} {seen[name]}"


def mutant_of(file: str, source: str, place: int) -> Mutant:
    """Return the file with the change at this place among all of its changes."""
    tree = ast.parse(source)
    node, field, value = changes(tree)[place]
    before = ast.unparse(node)
    around = function_around(tree, node.lineno)
    setattr(node, field, value)
    shown = f"{source.splitlines()[node.lineno - 1].strip()}  [{before} → {ast.unparse(node)}]"
    changed = file if around is None else f"{file}:{around}"
    return Mutant(file, node.lineno, shown, ast.unparse(tree), changed)


def changes(tree: ast.AST) -> list[Change]:
    """Return all changes of a file that a test can notice."""
    return [change for node in noticeable(tree) for change in changes_of(node)]


def noticeable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes without texts for people, annotations, decorators, and guards never met."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or is_named_limit(node):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not changes_nothing(node, child):
                    yield from noticeable(child)


def changes_nothing(node: ast.AST, child: ast.AST) -> bool:
    """`strict=True` of a sound call, and `reshape(-1, 2)`, where -2 would do as well."""
    match node, child:
        case _, ast.keyword(arg=name):
            return name in GUARDS
        case ast.Call(func=ast.Attribute(attr="reshape")), ast.UnaryOp(op=ast.USub()):
            return True
    return False


def is_named_limit(node: ast.AST) -> bool:
    """`JOINED_GAP = 1 << 16`: tests, too, know it by its name, and its neighbour would do."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.BinOp() as value):
            return name.isupper() and not any(isinstance(n, ast.Name) for n in ast.walk(value))
    return False


def changes_of(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of this node alone, without those below it."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                turned = [*operators[:place], TURNED[type(operator)](), *operators[place + 1 :]]
                yield node, "ops", turned
        case ast.BoolOp(op=operator):
            yield node, "op", TURNED[type(operator)]()
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator):
            if type(operator) in TURNED and not joins_texts(node):
                yield node, "op", TURNED[type(operator)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, "operand", ast.UnaryOp(ast.Not(), operand)  # twice: as good as never
        case ast.Constant(value=bool(value)):
            yield node, "value", not value
        case ast.Constant(value=int(value)):
            yield node, "value", value + 1
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "value", ast.Constant(None)


def joins_texts(node: ast.AST) -> bool:
    """Return whether this joins texts or lists, which cannot be subtracted."""
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in ast.iter_child_nodes(node)
    )


def native_sources(root: Path) -> dict[str, str]:
    """Return the files of py_runtime that can be imported outside the page."""
    paths = {path.relative_to(root).as_posix(): path for path in (root / PACKAGE).rglob("*.py")}
    sources = {file: path.read_text() for file, path in paths.items()}
    page = list(IN_THE_PAGE)
    while found := [file for file, source in sources.items() if imports_any(source, page)]:
        for file in found:  # and who imports it is in the page, too
            page.append(file.removesuffix(".py").replace("/", "."))
            del sources[file]
    return {file: source for file, source in sources.items() if "/bridge/" not in file}


def imports_any(source: str, modules: list[str]) -> bool:
    """Return whether the top level imports one; in a function or an `if` it may never happen."""
    for statement in ast.parse(source).body:
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        if any(f"{name}.".startswith(f"{module}.") for name in names for module in modules):
            return True
    return False


def room_tests(file: str) -> list[str]:
    """Return the files and folders of tests that know what the file does."""
    room = Path(file).parts[1]
    return [f"tests/{name}" for name in ROOM_TESTS.get(room, [room])]


class Copy:
    """A copy of the checkout, in which changes are made one at a time."""

    def __init__(self, root: Path, known: dict[str, Calls] | None = None) -> None:
        self.root = root
        self._known = {} if known is None else known  # by file of tests; copies may share it

    def fill(self) -> None:
        """Copy what git knows or would take up: changes that are not committed count."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.root / name)

    def test_files(self, places: Iterable[str]) -> list[str]:
        """Return the files of tests in these folders; a file stands for itself."""
        paths = [self.root / place for place in places]
        files = [[path] if path.is_file() else sorted(path.rglob("test_*.py")) for path in paths]
        return [file.relative_to(self.root).as_posix() for each in files for file in each]

    def notices(self, mutant: Mutant, *places: str) -> bool:
        """Return whether a test fails once the change is made."""
        files = self.test_files(places)
        for file in files:
            self.get_to_know(file)
        known = {test: seen for file in files for test, seen in self._known[file].items()}
        asked = nearest(mutant.changed, known) or list(known)
        path = self.root / mutant.file
        unchanged = path.read_bytes()
        path.write_text(mutant.source)
        try:
            return self._fails(asked, [known[test]["seconds"] for test in asked])
        finally:
            path.write_bytes(unchanged)

    def get_to_know(self, file: str) -> Calls:
        """Return what each test of a file calls; the first time, run them with nothing changed."""
        if file not in self._known:
            calls = self.root / "calls.json"
            if self._run([file], {CALLS: str(calls)}) not in (PASSED, NONE_SELECTED):
                sys.exit(f"{file}: fails with nothing changed; mend that first")
            self._known[file] = json.loads(calls.read_text())
        return self._known[file]

    def _fails(self, tests: list[str], seconds: list[float]) -> bool:
        """Run the tests until one fails; one that hangs has failed, and what hangs on is ended."""
        (self.root / "order.json").write_text(json.dumps(tests))
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        order = {ORDER: str(self.root / "order.json")}
        return self._run(files, order, patience(max(seconds)), patience(sum(seconds))) != 0

    def _run(
        self,
        tests: Iterable[str],
        order: dict[str, str],
        test_limit: float = 0,
        limit: float | None = None,
    ) -> int | None:
        """Return pytest's exit status, or None where it hung."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "tools.nearest_first", "--timeout", str(test_limit), "-m", NATIVE]
        # Nothing compiled is kept: of two changes within a second it might be the other's.
        own = {"PYTHONPATH": f"{self.root}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            [*command, *tests],
            cwd=self.root,
            env={**os.environ, **own, **order},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def patience(seconds: float) -> float:
    """Seconds to wait for what usually takes so many."""
    return PATIENCE * seconds + PATIENCE_SECONDS


class Copies:
    """Copies of the checkout, one for each core, that share what they know of the tests."""

    def __init__(self, folder: Path, count: int) -> None:
        self._pool = ThreadPoolExecutor(count)
        self._idle: SimpleQueue[Copy] = SimpleQueue()
        known: dict[str, Calls] = {}
        for number in range(count):
            copy = Copy(folder / str(number), known)
            copy.fill()
            self._idle.put(copy)

    def map(self, work: Callable[[Copy, T], R], items: Iterable[T]) -> list[R]:
        """Do the work for each item in a copy that is idle; return the results in order."""

        def work_in_copy(item: T) -> R:
            copy = self._idle.get()
            try:
                return work(copy, item)
            finally:
                self._idle.put(copy)

        return list(self._pool.map(work_in_copy, items))


def main() -> int:
    """Print each change and what came of it; return 1 if too few of them were noticed."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    wanted = parser.parse_args()
    mutants = sample(native_sources(ROOT), wanted.seed, wanted.count)
    tried = 0

    def is_noticed(copy: Copy, mutant: Mutant) -> bool:
        nonlocal tried
        noticed = copy.notices(mutant, *room_tests(mutant.file))
        tried += 1
        outcome = "noticed    " if noticed else "NOT NOTICED"
        print(f"{tried:4} {outcome} {mutant.file}:{mutant.line}  {mutant.shown}", flush=True)
        return noticed

    with tempfile.TemporaryDirectory(prefix="inpage-mutants-") as folder:
        copies = Copies(Path(folder), os.cpu_count() or 1)
        places = dict.fromkeys(place for each in mutants for place in room_tests(each.file))
        # First, so that no change waits for a file of tests that another one is running.
        copies.map(Copy.get_to_know, dict.fromkeys(Copy(ROOT).test_files(places)))
        noticed = sum(copies.map(is_noticed, mutants))
    print(f"{noticed} of {len(mutants)} noticed")
    return int(noticed < MIN_SHARE * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
