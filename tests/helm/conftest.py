"""Helm."""

from pathlib import Path

import pytest

from tests.helm import charts, situations


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


_SITUATIONS = situations.all_of_them()


class Rendered:
    """All situations, each when it is asked for."""

    def __init__(self, helm: charts.Helm) -> None:
        self._helm = helm
        self._known: dict[str, list[charts.Manifest]] = {}

    def __getitem__(self, situation: str) -> list[charts.Manifest]:
        if situation not in self._known:
            self._known[situation] = self._helm.template(_SITUATIONS[situation])
        return self._known[situation]


@pytest.fixture(scope="session")
def rendered(helm: charts.Helm) -> Rendered:
    """All situations."""
    return Rendered(helm)


@pytest.fixture(params=_SITUATIONS)
def manifests(rendered: Rendered, request: pytest.FixtureRequest) -> list[charts.Manifest]:
    """One situation after the other."""
    return rendered[request.param]
