"""Nothing of one visitor is where another one's request would find it: modules keep no state, and the environment is read in one place."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "vitdemo"
CHANGES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove", "setdefault", "sort", "subtract", "update", "put", "put_nowait"}
STATEFUL = {"Counter", "defaultdict", "OrderedDict", "deque", "Queue", "Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Thread", "WeakKeyDictionary",
            "WeakValueDictionary", "WeakSet", "ContextVar", "local", "Manager", "bytearray", "count", "cycle"}
ALLOWED = {
    ("takehome.py", "ONE_AT_A_TIME"),           # a lock, which remembers nothing: matplotlib's settings are the whole process's
    ("front.py", "cache"),                      # the front ends' text, read from files once
    ("transfer.py", "cache"),                   # the network's certificates, the same for everybody
    ("precision.py", "cache"),                  # what this processor can
    ("foreign.py", "settings"),                 # an empty default of a NamedTuple, which is read only
}
READ_ENVIRONMENT = {
    "settings.py": "the one place for what an owner may switch",
    "spin.py": "a library reads its settings there when it is loaded",
    "child.py": "a training child gets this process's environment as it is",
    "distributed.py": "torchrun tells a process its number so",
}


def state(name: str, source: str) -> list[tuple[str, str]]:
    """(file, what) for all that a module would remember between two requests."""
    tree = ast.parse(source)
    top = {target.id for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)) for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
           if isinstance(target, ast.Name)} | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    found = [(name, "global") for node in ast.walk(tree) if isinstance(node, ast.Global)]
    for holder in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in holder.body:
            value = getattr(node, "value", None)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and (isinstance(value, ast.Call) and _name(value.func) in STATEFUL
                                                                 or isinstance(value, (ast.List, ast.Dict)) and not ast.unparse(value)[1:-1]):
                found += [(name, ast.unparse(target)) for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        found += [(name, _name(one.func if isinstance(one, ast.Call) else one)) for one in function.decorator_list
                  if _name(one.func if isinstance(one, ast.Call) else one) in ("cache", "lru_cache")]
        own = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)} | {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in ast.walk(function):
            if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
                root = _root(node.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
                root = _root(node.func.value)
            else:
                continue
            if root in top - own or root is not None and root.isupper() and root not in own:
                found.append((name, root))
    return [one for one in found if one not in ALLOWED]


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.AST) -> str | None:
    """The name that a chain begins with; of another module's constant, that."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr.isupper():
            return node.attr
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_a_module_remembers_nothing_between_two_requests(path):
    assert state(path.name, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("source", ["LAST = {}", "class A:\n    seen = []", "SEEN = {1}\ndef f(x):\n    SEEN.add(x)", "ROWS = (1,)\ndef f(x):\n    global ROWS\n    ROWS = x",
                                    "K = {1: 2}\ndef f(x):\n    K[x] = 1", "K = dict(a=1)\ndef f(x):\n    del K[x]", "from m import LIST\ndef f(x):\n    LIST.append(x)",
                                    "import m\ndef f(x):\n    m.TABLE[x] = 1", "from collections import Counter\nc = Counter()", "class A: pass\ndef f(x):\n    A.last = x",
                                    "from functools import cache\n@cache\ndef f(x): return x", "from functools import lru_cache\nclass A:\n    @lru_cache(3)\n    def f(self): pass"])
def test_what_would_remember_is_noticed(source):
    assert state("x.py", source) != []


@pytest.mark.parametrize("source", ["K = {1: 2}\ndef f(x):\n    return K[x]", "def f(x):\n    seen = set()\n    seen.add(x)", "class A:\n    def __init__(self):\n        self.seen = []",
                                    "x = 1\ndef f(x):\n    x.append(1)"])
def test_what_does_not_is_left_alone(source):
    assert state("x.py", source) == []


def test_the_environment_is_read_where_it_should_be():
    readers = {path.name for path in PACKAGE.rglob("*.py") if any(word in path.read_text(encoding="utf-8") for word in ("os.environ", "getenv", "environb"))}
    assert readers == set(READ_ENVIRONMENT)
