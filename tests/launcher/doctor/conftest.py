"""The doctor is tested behind a real proxy before fake engines."""

from tests.proxy.conftest import duet, start

__all__ = ["duet", "start"]
