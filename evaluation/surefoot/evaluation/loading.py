"""From names to things: "module:function" to the function, a suite's name to the suite.

A suite is a YAML file, a Python file or "module:name"; a Python one exposes ``suite = Suite(...)``. The folder of a
file is where its imports are looked for first, and so is the working directory.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from surefoot.evaluation.errors import SuiteError
from surefoot.evaluation.suite import Suite


def load_suite(source: str) -> Suite:
    """Return the suite that ``source`` names. Raises SuiteError with a line for each mistake."""
    path = Path(source)
    if path.suffix in {".yaml", ".yml", ".json"}:
        from surefoot.evaluation.suite_files import read_suite

        _look_in(path.resolve().parent)
        return read_suite(path)
    if path.suffix == ".py":
        return _suite_in(_import_file(path), "suite", source)
    module, _, name = source.partition(":")
    if not module or "/" in module:
        raise SuiteError(f"{source!r} is no suite: name a .yaml or .py file, or module:name.")
    return _suite_in(_import(module, source), name or "suite", source)


def resolve(reference: Any, what: str) -> Any:
    """Return what "module:name" names, or what is given as it is. Raises SuiteError."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    if not module or not name:
        raise SuiteError(f"{what}: {reference!r} is no function; write module:function.")
    found: Any = _import(module, what)
    for step in name.split("."):
        if not hasattr(found, step):
            raise SuiteError(f"{what}: {module} has no {name!r}; correct the name, or define it there.")
        found = getattr(found, step)
    return found


def _import(module: str, what: str) -> Any:
    _look_in(Path.cwd())
    try:
        return importlib.import_module(module)
    except SuiteError as error:
        raise SuiteError(f"{what}: {module}: {error}") from error
    except Exception as error:
        raise SuiteError(f"{what}: importing {module} failed: {type(error).__name__}: {error}. Correct it.") from error


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise SuiteError(f"{path}: there is no such file; name a suite's file.")
    _look_in(path.resolve().parent)
    # The name under which its own functions are pickled and imported elsewhere.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise SuiteError(f"{path}: Python cannot import it; name a .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except SuiteError as error:
        del sys.modules[path.stem]
        raise SuiteError(f"{path}: {error}") from error
    except Exception as error:
        del sys.modules[path.stem]
        raise SuiteError(f"{path}: importing it failed: {type(error).__name__}: {error}. Correct it.") from error
    return module


def _suite_in(module: Any, name: str, source: str) -> Suite:
    found = getattr(module, name, None)
    if not isinstance(found, Suite):
        raise SuiteError(f"{source}: there is no Suite named {name!r} in it; write {name} = Suite(...).")
    return found


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
