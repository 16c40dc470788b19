"""Do the tests see a wrong line? Changes of one token in py_runtime, each of which they should.

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
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.files import ROOT
from tools.nearest_first import CALLS, ORDER, Calls, nearest

PACKAGE = "py_runtime"
MIN_SHARE = 0.9
NATIVE = "not browser and not built and not model"
ROOM_TESTS = {  # where the folder of a room's name does not have all its tests
    "__main__.py": ["app"],
    "app": ["app", "generation", "model", "inpage", "web/test_wording.py"],
    "base": ["base", "folder", "graph", "generation"],
    "chat": ["chat", "generation/test_tools.py", "generation/test_messages.py"],
    "decoder": ["decoder", "program", "gguf/test_config.py", "gguf/test_rows.py"],
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
# What a change may slow the tests down by, or a busy machine; then it hangs, which is noticed.
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
    """The first line, as Python counts it, of the innermost function that has this line."""
    found = None
    for node in ast.walk(tree):  # from the outside in
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if is_within(node, line):
                found = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return found


def is_within(node: ast.stmt, line: int) -> bool:
    """Whether the statement has this line."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def sample(sources: dict[str, str], seed: int, count: int) -> list[Mutant]:
    """So many of all changes of these files; the same ones for the same seed."""
    drawn = sorted(
        (hashlib.sha256(f"{seed} {name}".encode()).digest(), file, place)
        for file, source in sources.items()
        for place, name in enumerate(names_of_changes(file, source))
    )
    return [mutant_of(file, sources[file], place) for _, file, place in drawn[:count]]


def names_of_changes(file: str, source: str) -> Iterator[str]:
    """In their order; each name is the file's only one, and lines above it do not change it."""
    lines, seen = source.splitlines(), Counter[str]()
    for node, field, _ in changes(ast.parse(source)):
        name = f"{file} {lines[node.lineno - 1].strip()} {ast.unparse(node)} {field}"
        seen[name] += 1
        yield f"{name} {seen[name]}"


def mutant_of(file: str, source: str, place: int) -> Mutant:
    """The file with the change at this place among all of its changes."""
    tree = ast.parse(source)
    node, field, value = changes(tree)[place]
    before = ast.unparse(node)
    around = function_around(tree, node.lineno)
    setattr(node, field, value)
    shown = f"{source.splitlines()[node.lineno - 1].strip()}  [{before} → {ast.unparse(node)}]"
    changed = file if around is None else f"{file}:{around}"
    return Mutant(file, node.lineno, shown, ast.unparse(tree), changed)


def changes(tree: ast.AST) -> list[Change]:
    """All that one file allows for, but what no test can notice by nature."""
    return [change for node in noticeable(tree) for change in changes_of(node)]


def noticeable(node: ast.AST) -> Iterator[ast.AST]:
    """Without texts for people, annotations, decorators, and guards that nothing ever meets."""
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
    """Of this node alone, without those below it."""
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
    """Or lists: to subtract them is not a wrong line but a type error."""
    return any(
        isinstance(part, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str | bytes))
        for part in ast.iter_child_nodes(node)
    )


def native_sources(root: Path) -> dict[str, str]:
    """The files of py_runtime that can be imported outside the page."""
    paths = {path.relative_to(root).as_posix(): path for path in (root / PACKAGE).rglob("*.py")}
    sources = {file: path.read_text() for file, path in paths.items()}
    page = list(IN_THE_PAGE)
    while found := [file for file, source in sources.items() if imports_any(source, page)]:
        for file in found:  # and who imports it is in the page, too
            page.append(file.removesuffix(".py").replace("/", "."))
            del sources[file]
    return {file: source for file, source in sources.items() if "/bridge/" not in file}


def imports_any(source: str, modules: list[str]) -> bool:
    """At its top level: an import inside a function or an `if` may never happen."""
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
    """The files and folders of tests that know what the file does."""
    room = Path(file).parts[1]
    return [f"tests/{name}" for name in ROOM_TESTS.get(room, [room])]


class Known:
    """What tests call when nothing is changed, by file or folder of tests; found once for all."""

    def __init__(self) -> None:
        self._calls: dict[str, Calls] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, place: str, find: Callable[[str], Calls]) -> Calls:
        """Waits where another copy is finding it."""
        with self._locks[place]:
            if place not in self._calls:
                self._calls[place] = find(place)
            return self._calls[place]


class Copy:
    """A copy of the checkout, in which changes are made one at a time."""

    def __init__(self, root: Path, known: Known | None = None) -> None:
        self.root = root
        self._known = known or Known()

    def fill(self) -> None:
        """With what git knows or would take up: changes that are not committed count."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.root / name)

    def notices(self, mutant: Mutant, *tests: str) -> bool:
        places = [self._known.get(place, self.get_to_know) for place in tests]
        known = {test: seen for place in places for test, seen in place.items()}
        asked = nearest(mutant.changed, known) or list(known)
        path = self.root / mutant.file
        unchanged = path.read_bytes()
        path.write_text(mutant.source)
        try:
            return self._fails(asked, [known[test]["seconds"] for test in asked])
        finally:
            path.write_bytes(unchanged)

    def get_to_know(self, place: str) -> Calls:
        """Runs tests with nothing changed."""
        calls = self.root / "calls.json"
        if self._run([place], {CALLS: str(calls)}) != 0:
            sys.exit(f"{place}: fails with nothing changed; mend that first")
        found: Calls = json.loads(calls.read_text())
        return found

    def _fails(self, tests: list[str], seconds: list[float]) -> bool:
        """One after the other. A test that hangs has failed; what hangs beyond that is ended."""
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
        """pytest's exit status, or None where it hung."""
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


def try_rooms(
    rooms: deque[list[Mutant]], known: Known, say: Callable[[Mutant, bool], None]
) -> None:
    """Takes a room after the other while there are any; several may do so at once."""
    with tempfile.TemporaryDirectory(prefix="inpage-mutants-") as folder:
        copy = Copy(Path(folder), known)
        copy.fill()
        while rooms:
            for mutant in rooms.popleft():
                say(mutant, copy.notices(mutant, *room_tests(mutant.file)))


def by_room(mutants: Iterable[Mutant]) -> deque[list[Mutant]]:
    """The largest room first: what remains for the end is short."""
    rooms = defaultdict(list)
    for mutant in mutants:
        rooms[Path(mutant.file).parts[1]].append(mutant)
    return deque(sorted(rooms.values(), key=len, reverse=True))


def main() -> int:
    """Prints each change and what came of it; 1 where too few of them were noticed."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    wanted = parser.parse_args()
    mutants = sample(native_sources(ROOT), wanted.seed, wanted.count)
    tried: list[bool] = []

    def say(mutant: Mutant, noticed: bool) -> None:
        tried.append(noticed)
        said = "noticed    " if noticed else "NOT NOTICED"
        print(f"{len(tried):4} {said} {mutant.file}:{mutant.line}  {mutant.shown}", flush=True)

    rooms, known = by_room(mutants), Known()
    with ThreadPoolExecutor() as pool:
        cores = os.cpu_count() or 1
        for working in [pool.submit(try_rooms, rooms, known, say) for _ in range(cores)]:
            working.result()
    print(f"{sum(tried)} of {len(mutants)} noticed")
    return int(sum(tried) < MIN_SHARE * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
