"""The mutants of a module, each its source with one small fault, and how one takes the place of the real code.

What only people read is no fault to make: annotations, docstrings, text with a space in it, an error's `operation`.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType

_OTHER_COMPARISON: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
}
_OTHER_OPERATOR: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
}
_UNREAD = {"annotation", "returns", "decorator_list", "bases", "type_params"}
_REMOVABLE = (ast.Assign, ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)
_LONGEST_NAME = 60
Slot = tuple[ast.AST, str, int | None]
"""Where a node stands: in that field of its parent, at that index of a list."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: `node` in the slot. Tests that run any of `lines` may find it, or else any of `around`."""

    module: str
    name: str
    lines: frozenset[int]
    around: frozenset[int]
    kind: str  # "body", "defaults" or "constant": what of the module has to be replaced
    slot: Slot
    node: ast.AST

    def apply(self) -> None:
        """Puts the fault into the tree that the mutant was made from."""
        put(self.slot, self.node)


@dataclass(frozen=True, slots=True)
class _Place:
    """What the walk knows of where it is."""

    function: str = ""
    kind: str = "constant"
    statement: ast.AST | None = None
    body: ast.FunctionDef | None = None


def put(slot: Slot, node: ast.AST) -> None:
    """Puts the node where another one stands."""
    parent, field, index = slot
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def mutants_of(module: str, tree: ast.Module) -> list[Mutant]:
    """Every mutant of the module."""
    made: list[Mutant] = []
    seen: Counter[str] = Counter()
    for slot, old, new, place in _walk(tree, _Place()):
        statement = place.statement or old
        before = _told(statement)
        put(slot, new)
        after = "" if isinstance(old, ast.stmt) else _told(statement)
        put(slot, old)
        name = f"{module}.{place.function}: {_difference(before, after)}"
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name} ({seen[name]})"
        around = _within(place.body or tree)
        lines = around if place.kind == "defaults" else _within(old) | {getattr(statement, "lineno", 0)}
        made.append(Mutant(module, name, lines, around, place.kind, slot, new))
    return made


def _told(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()
    return text[1] if text[0].startswith("@") else text[0]


def _difference(before: str, after: str) -> str:
    """Both, without most of what they share."""
    if not after:
        return f"without {before[:_LONGEST_NAME]}"
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    start = max(0, min(start - 20, len(before) - _LONGEST_NAME))
    return f"{before[start : start + _LONGEST_NAME]} → {after[start : start + _LONGEST_NAME]}"


def _within(node: ast.AST) -> frozenset[int]:
    """The lines of a node; of a function those behind its first, which runs when it is made."""
    if isinstance(node, ast.FunctionDef):
        return frozenset(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    if isinstance(node, ast.Module):
        return frozenset(range(1, node.body[-1].lineno + 1))
    return frozenset(range(getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) + 1))


def _walk(node: ast.AST, place: _Place) -> Iterator[tuple[Slot, ast.AST, ast.AST, _Place]]:
    for field, value in ast.iter_fields(node):
        if field in _UNREAD:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_for_people(child):
                continue
            if isinstance(node, ast.Module | ast.ClassDef) and not _is_tried_at_top(node, child):
                continue
            inner = _inside(child, field, place)
            for new in _faults(child, field, node):
                if isinstance(node, ast.Module) and isinstance(new, ast.Pass):
                    continue  # the module would not even load
                ast.fix_missing_locations(ast.copy_location(new, child))
                yield (node, field, index), child, new, inner
            yield from _walk(child, inner)


def _is_for_people(node: ast.AST) -> bool:
    match node:
        case ast.Expr(ast.Constant()) | ast.keyword("operation"):
            return True
        case ast.JoinedStr(values):
            return any(_is_for_people(each) for each in values)
        case ast.Constant(str(text)):
            return " " in text
        case _:
            return False


def _is_tried_at_top(node: ast.AST, child: ast.AST) -> bool:
    """Functions, classes, and constants of the module that are neither types nor machinery."""
    if isinstance(child, ast.FunctionDef | ast.ClassDef):
        return True
    if not isinstance(node, ast.Module) or not isinstance(child, ast.Assign | ast.AnnAssign):
        return False
    return isinstance(child.value, ast.Constant | ast.Dict | ast.Tuple | ast.BinOp)


def _inside(child: ast.AST, field: str, place: _Place) -> _Place:
    if isinstance(child, ast.ClassDef | ast.FunctionDef):
        name = f"{place.function}.{child.name}" if place.function else child.name
        body = child if isinstance(child, ast.FunctionDef) and place.body is None else place.body
        return _Place(name, "constant" if body is None else "body", child, body)
    if isinstance(child, ast.arguments):
        return _Place(place.function, "defaults", place.statement, place.body)
    if isinstance(child, ast.stmt | ast.ExceptHandler):
        return _Place(place.function, place.kind, child, place.body)
    return place


def _faults(node: ast.AST, field: str, parent: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of the node."""
    match node:
        case ast.Compare(left, [operator], [right]):
            for other in _OTHER_COMPARISON[type(operator)]:
                yield ast.Compare(left, [other()], [right])
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            for index in range(len(values)):
                rest = [*values[:index], *values[index + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in _OTHER_OPERATOR:
            yield ast.BinOp(left, _OTHER_OPERATOR[type(operator)](), right)
        case ast.Constant():
            yield from _other_constants(node)
        case ast.Return(value) if not isinstance(value, ast.Constant):
            yield ast.Pass() if value is None else ast.Return(ast.Constant(None))
        case ast.Expr():
            yield ast.Pass()
        case ast.ExceptHandler(kind) if kind is not None:
            yield ast.ExceptHandler(ast.Tuple([], ast.Load()), node.name, node.body)
        case ast.AnnAssign(value=value) if value is not None:
            yield ast.Pass()
        case ast.AugAssign(target, operator, value) if type(operator) in _OTHER_OPERATOR:
            yield ast.Pass()
            yield ast.AugAssign(target, _OTHER_OPERATOR[type(operator)](), value)
        case _ if isinstance(node, _REMOVABLE):
            yield ast.Pass()
        case _:
            pass
    plain = isinstance(node, ast.Compare | ast.UnaryOp | ast.Constant)
    if field == "test" and not plain and not isinstance(parent, ast.Assert):
        yield ast.UnaryOp(ast.Not(), copy.copy(node))  # type: ignore[arg-type]  # a test is an expression
    if field == "ifs":
        yield ast.Constant(True)


def _other_constants(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str):
        yield ast.Constant(f"XX{value}")


def put_in_place(module: ModuleType, code: CodeType, kind: str) -> None:
    """Gives the functions of a module the bodies, or their defaults, or the module its constants, from other code."""
    made = ModuleType(module.__name__)
    made.__package__ = module.__package__
    exec(code, made.__dict__)
    for name, new in vars(made).items():
        old = vars(module).get(name)
        if getattr(new, "__module__", None) == module.__name__:
            for theirs, ours in zip(_functions(old), _functions(new), strict=True):
                if kind == "defaults":
                    theirs.__defaults__, theirs.__kwdefaults__ = ours.__defaults__, ours.__kwdefaults__
                theirs.__code__ = ours.__code__
        elif kind == "constant" and not name.startswith("__") and repr(old) != repr(new):
            for each in list(sys.modules.values()):
                if name in vars(each) and vars(each)[name] is old:
                    setattr(each, name, new)


def _functions(thing: object) -> Iterator[FunctionType]:
    """The functions that a function, a method or a class is made of."""
    if isinstance(thing, type):
        for each in vars(thing).values():
            if getattr(each, "__module__", thing.__module__) == thing.__module__ and not isinstance(each, type):
                yield from _functions(each)
    elif isinstance(thing, property):
        yield from (each for each in (thing.fget, thing.fset) if isinstance(each, FunctionType))
    elif isinstance(thing, staticmethod | classmethod):
        yield from _functions(thing.__func__)
    elif hasattr(thing, "__wrapped__"):
        yield from _functions(inspect.unwrap(thing))  # type: ignore[arg-type]  # what has wrapped one is callable
    elif isinstance(thing, FunctionType):
        yield thing
