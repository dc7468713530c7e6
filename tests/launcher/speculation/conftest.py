"""A profile whose engines are fakes."""

from tests.launcher.local.conftest import folder, ports, profile, proxy_port

__all__ = ["folder", "ports", "profile", "proxy_port"]
