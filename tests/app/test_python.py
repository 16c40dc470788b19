"""inpage.python(): users' code beside the live engine."""

import pytest

from tests.app.conftest import ApiPage
from tests.toy_model import NAME

pytestmark = pytest.mark.browser


def test_the_live_engine_is_at_hand(api: ApiPage) -> None:
    assert api.python("model is engine.model and graph is engine.model.graph") is True
    assert api.python("device is engine.device is graph.device") is True
    assert api.python("model.manifest.name") == NAME


def test_names_follow_the_engine(api: ApiPage) -> None:
    api.python("before = model")
    api.run(f"await inpage.load('{NAME}')")
    assert api.python("[before is model, model is engine.model, graph is model.graph]") == [
        False,
        True,
        True,
    ]
    api.run("await inpage.unload()")
    assert api.python("[engine.model, model, graph, device is engine.device]") == [
        None,
        None,
        None,
        True,
    ]


def test_a_users_own_names_stay(api: ApiPage) -> None:
    api.python("model = 'mine'")
    api.run("await inpage.models()")
    api.run("await inpage.completions.create({ prompt: 'fox', max_tokens: 1 })")
    assert api.python("model") == "mine"
    api.python("model = engine.model")


def test_the_models_own_interface(api: ApiPage) -> None:
    """`async for piece in model.chat(...)`, as the README has it; and one may leave the loop."""
    code = """
pieces = []
async for piece in model.chat([{"role": "user", "content": "fox"}], temperature=0, max_tokens=5,
                              ignore_eos=True):
    pieces.append(piece)
async for piece in model.chat([{"role": "user", "content": "fox"}], temperature=0):
    break
[[token for piece in pieces for token in piece.token_ids], pieces[-1].finish_reason,
 pieces[-1].usage.completion_tokens]
"""
    tokens, reason, count = api.python(code)
    assert (len(tokens), reason, count) == (5, "length", 5)
    request = {
        "messages": [{"role": "user", "content": "fox"}],
        "temperature": 0,
        "max_tokens": 5,
        "ignore_eos": True,
    }
    answer = api.run("return inpage.chat.completions.create(given)", request)
    assert answer["choices"][0]["token_ids"] == tokens


def test_a_users_model_beside_the_engines(api: ApiPage, toy_site_url: str) -> None:
    code = f"""
own = await Model.load(device, site + "models/{NAME}/")
tokens = [token async for token in own.greedy([5, 6, 7], 4)]
own.unload()
[tokens, [token async for token in engine.model.greedy([5, 6, 7], 4)]]
"""
    own, engines = api.python(code)
    assert own == engines
    assert len(own) == 4


def test_our_errors_keep_their_code_and_traceback(api: ApiPage) -> None:
    error = api.fails(
        "return inpage.python(given)", "[piece async for piece in model.complete('')]"
    )
    assert error["code"] == "invalid_request"
    assert error["param"] == "prompt"
    assert error["message"].startswith("RequestError: ")
    assert '<inpage.python>", line 1' in error["traceback"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("1 +", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
        ("class Odd(Exception):\n  def __str__(self): raise ValueError\nraise Odd", "Odd"),
    ],
)
def test_exceptions_come_back(api: ApiPage, code: str, message: str) -> None:
    error = api.fails("return inpage.python(given)", code)
    assert error["code"] == "python_error"
    assert message in error["message"]
    assert message.split(":")[0] in error["traceback"]
    assert api.python("1 + 1") == 2


@pytest.mark.parametrize(
    "code",
    [
        "engine = None",
        "del engine",
        "globals().clear()",
        "del engine, model, graph, device, np, load, Model",
    ],
)
def test_users_cannot_take_the_engine_away(api: ApiPage, code: str) -> None:
    api.python(f"{code}\nNone")
    assert api.python("1 + 1") == 2
    assert api.run("return (await inpage.models()).length") == 1
    assert api.python("load.__name__, np.__name__") == ["load", "numpy"]
    api.python("engine = __import__('py_runtime.app.in_page', fromlist=['x'])._own_engine; None")


@pytest.mark.parametrize(
    "code",
    [
        # __str__ that raises what no `except Exception` catches
        "class Odd(Exception):\n  def __str__(self): raise SystemExit\nraise Odd",
        "class Odd(BaseException):\n  def __str__(self): raise KeyboardInterrupt\nraise Odd",
        # a metaclass that has no name for its class
        "class Meta(type):\n  @property\n  def __name__(cls): raise ValueError\n"
        "class Odd(Exception, metaclass=Meta): pass\nraise Odd",
        # facts that are not JSON, of an error that claims to be ours
        "from py_runtime.base.errors import InpageError\n"
        "class Mute:\n  def __repr__(self): raise ValueError\n"
        "class Odd(InpageError):\n  def facts(self): return {'x': Mute()}\nraise Odd",
        # a result that cannot be shown
        "class Mute:\n  def __repr__(self): raise SystemExit\nMute()",
        "raise SystemExit",
        "raise GeneratorExit",
        "raise KeyboardInterrupt",
    ],
)
def test_a_reply_is_always_sent(api: ApiPage, code: str) -> None:
    assert api.fails("return inpage.python(given)", code)["code"] == "python_error"
    assert api.python("1 + 1") == 2


@pytest.mark.parametrize(
    "code", ["sys.modules.clear()", "sys.modules = {}", "del sys.modules['builtins']"]
)
def test_an_interpreter_without_its_modules_is_mended(api: ApiPage, code: str) -> None:
    error = api.fails("return inpage.python(given)", f"import sys; {code}\n{{}}['lost']")
    assert error["message"] == "KeyError: 'lost'"
    assert "KeyError: 'lost'" in error["traceback"]
    assert api.python("import json, decimal\njson.loads('2')") == 2
    request = {"prompt": "fox", "max_tokens": 1}
    answer = api.run("return inpage.completions.create(given)", request)
    assert answer["usage"]["completion_tokens"] == 1


def test_objects_of_the_engine_come_back_as_their_names(api: ApiPage) -> None:
    for name in ("engine", "model", "graph"):
        assert name in api.python(name)["repr"].lower()


def test_an_unknown_call_is_an_error(api: ApiPage) -> None:
    """Only what the engine offers can be called from the page."""
    code = """
import asyncio, json
from py_runtime.app import in_page
told = []
emit, in_page._emit = in_page._emit, lambda *message: told.append(message)
in_page.start(10**6, "nonsense", "{}")
in_page.cancel(10**7)
while not told:
    await asyncio.sleep(0)
in_page._emit = emit
told
"""
    ((number, answer, is_last),) = api.python(code)
    assert (number, is_last) == (10**6, True)
    assert "no call 'nonsense'" in answer


def test_the_public_name(api: ApiPage) -> None:
    """`import inpage` beside the page's own model, which keeps its device."""
    code = """
import inpage
listed = await inpage.models()
mine = await inpage.load(listed[0].where)
found = [entry.name for entry in listed], mine.graph.device is engine.device, mine is model
answers = [[token async for token in each.greedy([1, 2, 3], 4)] for each in (mine, model, mine)]
mine.unload()
[*found, answers[0] == answers[1] == answers[2], await inpage.models() == listed]
"""
    assert api.python(code) == [[NAME], True, False, True, True]
