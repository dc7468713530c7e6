"""What is ours, and the tree of errors as it is documented."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import launcher
import proxy
from launcher import errors

ROOT = Path(__file__).parent.parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCUMENTED = {name: int(code) for name, code in re.findall(r"── (\w+Error) +(\d+) ", errors.__doc__)}


def subclasses():
    found = [value for name, value in vars(errors).items() if inspect.isclass(value) and not name.startswith("_")]
    return [value for value in found if issubclass(value, errors.LauncherError) and value is not errors.LauncherError]


@pytest.mark.parametrize("package", [launcher, proxy])
def test_the_packages_are_those_of_this_checkout(package):
    assert Path(package.__file__).parent.parent == ROOT


@pytest.mark.parametrize("target", PYPROJECT["project"]["scripts"].values())
def test_a_console_script_can_be_called(target):
    module, _, function = target.partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_every_error_is_documented_with_its_exit_code():
    assert {error.__name__: error.exit_code for error in subclasses()} == DOCUMENTED


def test_every_error_is_a_launcher_error():
    here = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
    assert all(issubclass(value, errors.LauncherError) for value in here)


def test_a_fault_is_told_once_and_in_the_order_of_lines():
    error = errors.ProfileError(["p.yaml:10: b", "p.yaml:9: a", "p.yaml:10: b", "no place"])
    assert error.messages == ("no place", "p.yaml:9: a", "p.yaml:10: b")


def test_a_dead_process_leaves_its_last_lines():
    error = errors.InstanceDiedError("gone", ["a", "b"])
    assert (str(error), error.log_tail) == ("gone", ("a", "b"))
