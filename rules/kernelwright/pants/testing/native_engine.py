"""A stand-in for Pants' native engine, for a folder with only the Python sources of Pants.

It is made from the engine's own description of its types, ``native_engine.pyi``. With it, modules can be imported and
rules inspected; nothing can be executed.
"""

from __future__ import annotations
import __future__

import ast
import collections
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Iterable, Mapping, Optional

NAME = "pants.engine.internals.native_engine"


class FrozenDict(Mapping[Any, Any]):
    """Stand-in for the engine's hashable dictionary."""

    _items: dict[Any, Any]

    def __new__(cls, *items: Any, **more: Any) -> FrozenDict:
        self = super().__new__(cls)
        self._items = dict(*items, **more)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))


class FrozenOrderedSet(collections.abc.Set):  # type: ignore[type-arg]
    """Stand-in for the engine's hashable set that keeps its order."""

    _items: dict[Any, None]

    def __new__(cls, items: Optional[Iterable[Any]] = None) -> FrozenOrderedSet:
        self = super().__new__(cls)
        self._items = dict.fromkeys(items or ())
        return self

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items))


class LockedMap:
    """Stand-in for the engine's dictionary that computes missing values."""

    def __init__(self) -> None:
        self._items: dict[Any, Any] = {}

    def get_or_insert(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return the value of a key, computed once."""
        if key not in self._items:
            self._items[key] = compute()
        return self._items[key]


class RuleCallTrampoline:
    """Stand-in for what the ``rule`` decorator of Pants 2.33 returns."""

    def __init__(self, rule_id: str, output_type: type, wrapped: Callable[..., Any], rule: Any) -> None:
        self.__dict__.update(vars(wrapped))
        self.rule_id, self.output_type, self.rule = rule_id, output_type, rule
        self.__wrapped__ = wrapped
        self.__name__, self.__module__ = wrapped.__name__, wrapped.__module__
        self.__annotations__ = {"return": output_type}

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("nothing can be executed without Pants' native engine")


class _Record:
    def __init__(self, *values: Any, **more: Any) -> None:
        self.values = (*values, *more.values())


_REAL = {
    "FrozenDict": FrozenDict,
    "FrozenOrderedSet": FrozenOrderedSet,
    "LockedMap": LockedMap,
    "RuleCallTrampoline": RuleCallTrampoline,
    "UnionRule": _Record,
    "default_cache_path": str,
}


class _Engine(ast.NodeTransformer):
    """Applies the differences between the description and the engine."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Optional[ast.ImportFrom]:
        """Drop imports of Pants' own modules, which are for annotations and circular."""
        return None if (node.module or "").startswith("pants") else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Make classes non-generic, as the engine's are."""
        bases = [base for base in node.bases if not ast.unparse(base).startswith("Generic[")]
        node.bases = [base.value if isinstance(base, ast.Subscript) else base for base in bases]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.FunctionDef:
        """Make functions synchronous: the engine's have no source in which Pants could look for calls."""
        plain = ast.FunctionDef(**{name: getattr(node, name) for name in node._fields})
        return ast.copy_location(plain, node)


def install(pants: Path) -> None:
    """Make ``import`` find the stand-in; ``pants`` is the folder of Pants' package."""
    text = (pants / "engine/internals/native_engine.pyi").read_text()
    tree = _Engine().visit(ast.parse(text))
    code = compile(tree, f"{NAME} (stand-in)", "exec", flags=__future__.annotations.compiler_flag)
    module = ModuleType(NAME)
    module.__file__ = str(pants / "engine/internals/native_engine.pyi")
    module.__getattr__ = _constant  # type: ignore[method-assign]
    sys.modules[NAME] = module
    exec(code, module.__dict__)
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == NAME and not issubclass(value, BaseException):
            value.__class_getitem__ = classmethod(lambda cls, _: cls)  # type: ignore[attr-defined]
    for name, real in _REAL.items():
        if hasattr(module, name):
            setattr(module, name, real)


def _constant(name: str) -> object:
    """Return a value that the description declares without one, such as ``EMPTY_DIGEST``."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _Record()
