"""What a quantization needs besides a model."""

import pytest

from launcher.errors import QuantizeError
from launcher.measure import packages
from launcher.quantize import inputs


def test_packages_that_are_missing_are_named_with_their_extra(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "matplotlib" else name)
    with pytest.raises(QuantizeError, match=r"matplotlib must be installed: pip install 'duet-serve\[measure\]'"):
        inputs.packages()
