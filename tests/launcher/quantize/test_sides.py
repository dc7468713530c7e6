"""How both sides of a comparison are served."""

import pytest

from launcher import loader
from launcher.errors import QuantizeError
from launcher.profile import Device
from launcher.quantize.sides import serving


@pytest.mark.parametrize(("has_gpus", "device"), [(True, Device.CUDA), (False, Device.CPU)])
def test_without_a_profile_this_machine_decides(has_gpus, device):
    assert serving(None, has_gpus, 100).device is device


def test_a_profile_of_gpus_cannot_be_judged_without_them():
    with pytest.raises(QuantizeError, match="this machine has none to judge with"):
        serving(loader.load("api-throughput"), False, 100)
