"""Helm."""

from pathlib import Path

import pytest

from tests.helm import charts


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Helm keeps what it keeps."""
    return tmp_path_factory.mktemp("helm")


@pytest.fixture(scope="session")
def helm(home: Path) -> charts.Helm:
    """The one that most tests use."""
    return charts.helm("helm3", home)


@pytest.fixture(scope="session", params=["helm3", "helm4"])
def each_helm(request: pytest.FixtureRequest, home: Path) -> charts.Helm:
    """Both."""
    return charts.helm(request.param, home)
