"""The rules of the APIs hold through the pair, and, for reference, for one engine alone."""

import httpx
import pytest

from tests.conformance.cases import CASES
from tests.conformance.check import check
from tests.real.conftest import Pair


@pytest.mark.parametrize("target", ["proxy", "decode"])
@pytest.mark.parametrize("name", CASES)
def test_a_target(name: str, target: str, pair: Pair):
    case = CASES[name]
    with httpx.Client(trust_env=False, timeout=60) as client:
        answer = client.request(
            case.method, getattr(pair, target) + case.path, content=case.content, headers=case.headers
        )
    check(case, answer)
