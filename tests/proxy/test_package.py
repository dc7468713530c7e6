"""``proxy`` is a common name."""

from pathlib import Path

import proxy


def test_the_imported_proxy_is_ours():
    assert Path(proxy.__file__).parent == Path(__file__).parents[2] / "proxy"
