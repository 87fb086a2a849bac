"""Write src/mew/client/blocking/sync.pyi: the types of the synchronous face, made of the classes that it stands for.

`mew.client.blocking.sync` names those classes. What is awaited there returns here; names and types stay what they
are, as each class of the face has the name of the one it stands for.
"""

import ast
import enum
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar, get_args

import msgspec

from mew.client.blocking import sync
from mew.client.blocking.proxy import FACES, Face, spoken

__all__ = ["STUB", "stub"]

STUB: Final = Path(sync.__file__).with_suffix(".pyi")

_HEADER: Final = (
    '"""The types of `sync.py`: made by `scripts/sync_stub.py` of the classes it stands for."""',
    "# ruff: noqa: E501",
)
_RENAMED: Final = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}
_KEPT: Final = frozenset({"__len__", "__contains__", "__getitem__", "__iter__"})
_VALUES: Final = (enum.Enum, msgspec.Struct, BaseException)
_NEXT_WITHIN: Final = "def next_within(self, timeout_s: float) -> {} | None: ..."
_WAIT: Final = "def wait(self, timeout_s: float | None = None) -> {}: ..."
_OURS: Final = ("mew.client.", "mew.proposals.")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def stub() -> str:
    """The text of the stub, as it has to be now."""
    names = _Names()
    names.take("final", "from typing import final")
    faces = {
        face.of.__name__: face
        for face in FACES.values()
        if face.proxy is getattr(sync, face.of.__name__, None)
    }
    home = _Source(sync, faces, names)
    parts: list[ast.FunctionDef | ast.ClassDef]
    parts = [home.function(node) for node in home.tree.body if isinstance(node, ast.FunctionDef)]
    for face in faces.values():
        of = [klass for klass in reversed(face.of.__mro__) if _is_ours(klass)]
        parts.append(_class(face, home, {k: _Source(sys.modules[k.__module__], faces, names) for k in of}))
    for name in set(sync.__all__) - {part.name for part in parts}:
        home.need(name)
    lines = [*_HEADER, *names.imports(), f"__all__ = {sync.__all__!r}", *names.variables()]
    return _formatted("\n".join([*lines, *map(ast.unparse, parts)]) + "\n")


def main() -> None:
    STUB.write_text(stub(), encoding="utf-8")
    sys.stdout.write(f"{STUB.name} written\n")


class _Names:
    """What the stub takes from elsewhere, under which name."""

    def __init__(self) -> None:
        self._from: dict[str, str] = {}
        self._variables: set[str] = set()

    def take(self, name: str, line: str) -> None:
        if self._from.setdefault(name, line) != line:
            raise TypeError(f"two things are called {name}: {self._from[name]!r} and {line!r}")

    def vary(self, name: str) -> None:
        self._variables.add(name)
        self.take("TypeVar", "from typing import TypeVar")

    def imports(self) -> list[str]:
        return sorted(self._from.values())

    def variables(self) -> list[str]:
        return [f'{name} = TypeVar("{name}")' for name in sorted(self._variables)]


class _Source(ast.NodeTransformer):
    """A module whose annotations are brought into the stub."""

    def __init__(self, module: ModuleType, faces: Mapping[str, Face], names: _Names) -> None:
        self.tree = ast.parse(inspect.getsource(module))
        self._module = module
        self._faces = faces
        self._names = names
        self._imports = dict(self._imported())

    def classes(self, name: str) -> ast.ClassDef:
        return next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)

    def function(self, node: _Function) -> ast.FunctionDef:
        """The function as the stub has it: synchronous, and with the first line of its docstring."""
        said = spoken(ast.get_docstring(node))
        made = ast.FunctionDef(
            name=_RENAMED.get(node.name, node.name),
            args=self._arguments(node.args),
            body=_docstring(said),
            decorator_list=list(node.decorator_list),
            returns=None if node.returns is None else self.annotation(node.returns),
        )
        return ast.fix_missing_locations(made)

    def annotation(self, node: ast.expr) -> ast.expr:
        made = self.visit(ast.parse(ast.unparse(node), mode="eval").body)
        assert isinstance(made, ast.expr), ast.dump(node)
        return made

    def need(self, name: str) -> None:
        """Have the stub import it from where it is."""
        if name in self._imports:
            self._names.take(name, self._imports[name])
        elif name in vars(self._module):
            self._names.take(name, self._import_of(self._module.__name__, name, name))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            self.need("Literal")
            return node
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return (
            self.annotation(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node
        )

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = vars(self._module).get(node.id)
        if isinstance(known, TypeVar):
            self._names.vary(f"_{node.id}")
            return ast.Name(f"_{node.id}")
        if node.id in self._faces:
            return node
        if isinstance(known, type) and _is_ours(known) and issubclass(known, Mapping):  # what is a copy here
            there = _Source(sys.modules[known.__module__], self._faces, self._names)
            return there.annotation(there.classes(known.__name__).bases[0])
        self._check(node.id, known)
        self.need(node.id)
        return node

    def _check(self, name: str, known: Any) -> None:
        """That it is a value, and holds nothing that belongs to the loop.

        Raises:
            TypeError: it does; then `mew.client.blocking.sync` needs a class for that.
        """
        for part in _parts(known):
            is_value = issubclass(part, _VALUES) or _is_frozen(part) or self._module is sync
            if _is_ours(part) and not is_value:
                raise TypeError(f"{name} in {self._module.__name__}: there is no synchronous {part.__name__}")

    def _arguments(self, given: ast.arguments) -> ast.arguments:
        for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if arg is not None and arg.annotation is not None:
                arg.annotation = self.annotation(arg.annotation)
        given.defaults = [self._default(default) for default in given.defaults]
        given.kw_defaults = [default and self._default(default) for default in given.kw_defaults]
        return given

    def _default(self, default: ast.expr) -> ast.expr:
        """As it is, where the stub can say it; `...` says that there is one."""
        match default:
            case ast.Constant() | ast.Tuple(elts=[]):
                return default
            case ast.Attribute(value=ast.Name(id=str(name))):
                self.need(name)
                return default
        return ast.Constant(...)

    def _imported(self) -> Iterator[tuple[str, str]]:
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom):
                relative = "." * node.level + (node.module or "")
                module = importlib.util.resolve_name(relative, self._module.__package__)
                for alias in node.names:
                    name = alias.asname or alias.name
                    yield name, self._import_of(module, alias.name, name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.asname or alias.name, ast.unparse(ast.Import([alias]))

    @staticmethod
    def _import_of(module: str, name: str, alias: str) -> str:
        near = f"{sync.__package__}."
        where = f".{module.removeprefix(near)}" if module.startswith(near) else module
        return f"from {where} import {name}" + ("" if name == alias else f" as {alias}")


def _class(face: Face, home: _Source, sources: Mapping[type, _Source]) -> ast.ClassDef:
    """What the face's own class body has, and the rest of the class that it stands for and of what that extends."""
    here = home.classes(face.of.__name__)
    bases: list[ast.expr] = []
    attributes: dict[str, list[ast.stmt]] = {}
    methods: dict[str, list[ast.stmt]] = {}
    for klass, source in sources.items():
        there = source.classes(klass.__name__)
        bases += [source.annotation(base) for base in map(_base, there.bases) if base is not None]
        for node in there.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                attributes |= _attributes(node, source, face.without)
            elif isinstance(node, _Function) and node.name not in face.without:
                made = list(_methods(node, face.proxy, there, source))
                methods[_RENAMED.get(node.name, node.name)] = made
    for node in here.body:
        if isinstance(node, ast.FunctionDef):
            methods[node.name] = [home.function(node)]
    body = _docstring(spoken(ast.get_docstring(here) or inspect.getdoc(face.of)))
    for members in (attributes, methods):
        body += [statement for made in members.values() for statement in made]
    made_of = ast.ClassDef(here.name, bases, [], body, [ast.Name("final")])
    return ast.fix_missing_locations(made_of)


def _methods(node: _Function, proxy: Any, of: ast.ClassDef, source: _Source) -> Iterator[ast.stmt]:
    if not node.name.startswith("_") or node.name in _KEPT or node.name in _RENAMED:
        yield source.function(node)
    if node.name == "__anext__":
        assert node.returns is not None, "an iterator of what?"
        yield _of_the_proxy(_NEXT_WITHIN, proxy.next_within.__doc__, source.annotation(node.returns))
    if node.name == "__await__":
        result = next(base.slice for base in of.bases if isinstance(base, ast.Subscript))
        yield _of_the_proxy(_WAIT, proxy.wait.__doc__, source.annotation(result))


def _of_the_proxy(signature: str, said: str, result: ast.expr) -> ast.stmt:
    made = ast.parse(signature.format(ast.unparse(result))).body[0]
    assert isinstance(made, ast.FunctionDef), signature
    made.body = _docstring(said)
    return made


def _attributes(init: ast.FunctionDef, source: _Source, without: frozenset[str]) -> dict[str, list[ast.stmt]]:
    """What is set where it is made, with its docstring."""
    found: dict[str, list[ast.stmt]] = {}
    given = {arg.arg: arg.annotation for arg in (*init.args.args, *init.args.kwonlyargs)}
    for node, following in zip(init.body, [*init.body[1:], None], strict=True):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"), attr=str(name))]):
                written = None
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name("self"), attr=str(name))):
                written = node.annotation
            case _:
                continue
        if name.startswith("_") or name in without:
            continue
        if written is None:
            assert node.value is not None, ast.unparse(node)
            written = _type_of(node.value, given)
        found[name] = [ast.AnnAssign(ast.Name(name), source.annotation(written), None, 1)]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            found[name] += _docstring(spoken(str(following.value.value)))
    return found


def _docstring(said: str | None) -> list[ast.stmt]:
    """Its first line."""
    return [ast.Expr(ast.Constant(said.partition("\n")[0] if said else ...))]


def _type_of(value: ast.expr, given: Mapping[str, ast.expr | None]) -> ast.expr:
    match value:
        case ast.Call(func=ast.Name() as made):
            return made
        case ast.Name(id=name) if given.get(name) is not None:
            annotation = given[name]
            assert annotation is not None
            return annotation
        case ast.Constant(value=constant) if constant is not None:
            return ast.Name(type(constant).__name__)
        case ast.IfExp(body=either, orelse=other):
            types = {ast.unparse(_type_of(part, given)).removesuffix(" | None") for part in (either, other)}
            if len(types) == 1:
                return ast.parse(types.pop(), mode="eval").body
    raise TypeError(f"annotate it where it is set: {ast.unparse(value)}")


def _base(base: ast.expr) -> ast.expr | None:
    match base:
        case ast.Subscript(value=ast.Name("AsyncIterator"), slice=item):
            return ast.parse(f"Iterator[{ast.unparse(item)}]", mode="eval").body
        case ast.Subscript(value=ast.Name("Generic")):
            return base
        case ast.Subscript(value=ast.Name("Awaitable")) | ast.Name():  # what it extends is in it
            return None
    raise TypeError(f"what is a {ast.unparse(base)}, synchronously?")


def _parts(known: Any) -> Iterator[type]:
    if isinstance(known, type):
        yield known
    for part in get_args(known):
        yield from _parts(part)


def _is_ours(part: type) -> bool:
    return part.__module__.startswith(_OURS)


def _is_frozen(part: type) -> bool:
    params = getattr(part, "__dataclass_params__", None)
    return params is not None and params.frozen is True


def _formatted(text: str) -> str:
    for command in (["check", "--fix", "--quiet", "--select=I,F401,UP"], ["format", "--quiet"]):
        ruff = [str(Path(sys.executable).with_name("ruff")), *command, f"--stdin-filename={STUB}", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, check=True, text=True).stdout
    return text


if __name__ == "__main__":
    main()
