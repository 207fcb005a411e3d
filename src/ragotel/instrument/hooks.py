"""Hooks: one table per library patches it when it is imported, and puts back what was there.

Pipeline: library's own call -> [hooks] -> calls -> recorder

Each hook stands alone: one whose target is gone, or that fails, is logged and leaves the others be.
"""

from __future__ import annotations

import copy
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from types import MethodType
from typing import Any, TypeAlias

import wrapt
from opentelemetry import context as otel_context

from ragotel import faults, recorder, running

Wrapper: TypeAlias = Callable[[Any, Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""As `wrapt` calls it: the wrapped callable, its instance, arguments, keywords."""

_SUPPRESSED = "suppress_instrumentation"
_MISSING = object()


@dataclass(frozen=True)
class Hook:
    """One attribute to be wrapped, such as ``QdrantClient.query_points``."""

    module: str
    path: str
    wrapper: Wrapper
    is_optional: bool = False
    """Not every supported version has it."""


@dataclass(frozen=True)
class Family:
    """Methods to be wrapped on a base and on every subclass that defines them, now or later."""

    module: str
    base: str
    wrappers: Mapping[str, Wrapper]
    with_base: bool = False
    """The base's own methods do the work too."""


@dataclass(frozen=True)
class Library:
    """What is known of one library; `hooks` and `families` are its patch table."""

    name: str
    package: str
    """The distribution, as pip knows it."""
    versions: str
    """Versions that the table was made for, as a requirement."""
    hooks: tuple[Hook, ...] = ()
    families: tuple[Family, ...] = ()

    def installed_version(self) -> str | None:
        """Version of the distribution in this environment; None: not installed."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


class _Bound(wrapt.BoundFunctionWrapper):  # type: ignore[type-arg]
    """A hooked method of an instance or a class: copied and pickled as a method is."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # `weakref.WeakMethod` makes a method anew from its function and its instance.
        return MethodType(*args) if len(args) == 2 else super().__new__(cls, *args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        holder = self._self_instance
        if holder is None:
            holder = getattr(self, "_self_owner", None)
        if holder is None:
            return str(self.__qualname__)
        return getattr, (holder, self._self_parent._self_name)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        if self._self_instance is None:
            return self
        return getattr(copy.deepcopy(self._self_instance, memo), self._self_parent._self_name)


class _Hooked(wrapt.FunctionWrapper):  # type: ignore[type-arg]
    """A wrapper that passes for the function itself and is pickled by its name."""

    __bound_function_wrapper__ = _Bound

    def __init__(self, wrapped: Any, wrapper: Any, name: str) -> None:
        super().__init__(wrapped, wrapper)
        self._self_name = name

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr(self.__wrapped__, "__qualname__", None) or super().__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


@dataclass
class _Patch:
    owner: Any
    name: str
    before: Any
    """What the owner's own dict had; _MISSING: it was inherited."""
    ours: Any

    def revert(self) -> None:
        if vars(self.owner).get(self.name) is not self.ours:
            # Someone has patched on top of ours, which stays below and passes every call on.
            return
        if self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


@dataclass
class Switch:
    """One library's hooks, on or off."""

    library: Library
    is_on: bool = False
    patches: list[_Patch] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Targets that the installed version does not have."""
    _watched: set[str] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def turn_on(self) -> None:
        """Patch what is imported already, and the rest as soon as it is imported."""
        with self._lock:
            if self.is_on:
                return
            self.is_on = True
            modules = [hook.module for hook in self.library.hooks]
            modules += [family.module for family in self.library.families]
            new = [name for name in dict.fromkeys(modules) if name not in self._watched]
            known = [name for name in self._watched if name in sys.modules]
            self._watched.update(new)
        # Without the lock: another thread may import one of them now, and wait for it in the hook.
        for name in known:
            self._on_import(sys.modules[name])
        for name in new:
            wrapt.register_post_import_hook(self._on_import, name)

    def turn_off(self) -> None:
        """Put back what was there, the last patch first."""
        with self._lock:
            self.is_on = False
            while self.patches:
                patch = self.patches.pop()
                try:
                    patch.revert()
                except Exception:
                    faults.note(f"undo the hook {patch.name} of {self.library.name}")
            self.missing.clear()

    def _on_import(self, module: Any) -> None:
        """Patch one module; called by the import system, so nothing may get out."""
        with self._lock:
            if not self.is_on:
                return
            for hook in self.library.hooks:
                if hook.module == module.__name__:
                    self._guarded(self._hook, hook.path, module, hook)
            for family in self.library.families:
                if family.module == module.__name__:
                    self._guarded(self._hook_family, family.base, module, family)

    def _guarded(self, apply: Callable[..., None], path: str, *args: Any) -> None:
        try:
            apply(*args)
        except Exception:
            faults.note(f"hook {path} of {self.library.name}")

    def _hook(self, module: Any, hook: Hook) -> None:
        *owners, name = hook.path.split(".")
        owner = module
        for part in owners:
            owner = getattr(owner, part, _MISSING)
        if owner is _MISSING or not hasattr(owner, name):
            if not hook.is_optional:
                self._report(f"{hook.module}.{hook.path}")
            return
        self._wrap(owner, name, hook.wrapper)

    def _hook_family(self, module: Any, family: Family) -> None:
        base = getattr(module, family.base, None)
        if base is None:
            self._report(f"{family.module}.{family.base}")
            return
        if family.with_base:
            self._wrap_own(base, family)
        for cls in _descendants(base):
            self._wrap_own(cls, family)
        self._watch_subclasses(base, family)

    def _wrap_own(self, cls: type, family: Family) -> None:
        for name, wrapper in family.wrappers.items():
            if name in vars(cls):
                self._guarded(self._wrap, f"{cls.__name__}.{name}", cls, name, wrapper)

    def _watch_subclasses(self, base: type, family: Family) -> None:
        before: Any = vars(base).get("__init_subclass__", _MISSING)

        def watched(cls: Any, /, **kwargs: Any) -> None:
            if before is _MISSING:
                above: Any = super(base, cls)
                above.__init_subclass__(**kwargs)
            else:
                before.__get__(None, cls)(**kwargs)
            if self.is_on:
                self._wrap_own(cls, family)

        ours: Any = classmethod(watched)
        type.__setattr__(base, "__init_subclass__", ours)
        self.patches.append(_Patch(base, "__init_subclass__", before, ours))

    def _wrap(self, owner: Any, name: str, wrapper: Wrapper) -> None:
        before = vars(owner).get(name, _MISSING)
        if any(patch.owner is owner and patch.ours is before for patch in self.patches):
            return
        raw = before
        if raw is _MISSING:
            # Inherited: wrapped on this class alone, and deleted from it again.
            raw = next((vars(c)[name] for c in owner.__mro__ if name in vars(c)), _MISSING)
            raw = getattr(owner, name) if raw is _MISSING else raw
        ours = _Hooked(raw, self._switched(wrapper), name)
        setattr(owner, name, ours)
        self.patches.append(_Patch(owner, name, before, ours))

    def _switched(self, wrapper: Wrapper) -> Wrapper:
        def call(
            wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
        ) -> Any:
            if not self.is_on or not is_recording():
                return wrapped(*args, **kwargs)
            return wrapper(wrapped, instance, args, kwargs)

        return call

    def _report(self, target: str) -> None:
        self.missing.append(target)
        faults.advise(
            "ragotel cannot hook %s: %s %s does not have it, only %s; what it does is not recorded",
            target,
            self.library.package,
            self.library.installed_version(),
            self.library.versions,
        )


def _descendants(base: type) -> Iterator[type]:
    seen: set[type] = set()
    waiting = [base]
    cls: type
    while waiting:
        for cls in type.__subclasses__(waiting.pop()):
            if cls not in seen:
                seen.add(cls)
                waiting.append(cls)
                yield cls


def is_recording() -> bool:
    """Whether a hooked call is to be looked at: ragotel is active and nobody asked for silence."""
    if recorder.active is None and recorder.configure_from_environment() is None:
        return False
    if running.current.get() is not None:
        return True
    # Inside of a request of ours a foreign instrumentation's suppression of its own inner spans
    # is no word about the record.
    return not otel_context.get_value(_SUPPRESSED)


def check_targets(library: Library) -> list[str]:
    """Import a library's modules and list the targets that they do not have (for tests)."""
    gone = []
    for hook in library.hooks:
        try:
            found: Any = importlib.import_module(hook.module)
            for part in hook.path.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            if not hook.is_optional:
                gone.append(f"{hook.module}.{hook.path}")
    for family in library.families:
        try:
            base = getattr(importlib.import_module(family.module), family.base)
        except (ImportError, AttributeError):
            gone.append(f"{family.module}.{family.base}")
            continue
        known = (base, *_descendants(base))
        gone += [
            f"{family.module}.{family.base}.{name}"
            for name in family.wrappers
            if not any(name in vars(cls) for cls in known)
        ]
    return gone
