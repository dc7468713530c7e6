"""The doctor is tested behind a real proxy before fake engines, and on deployments of the launcher."""

from tests.launcher.local.conftest import command, folder, launch, ports, profile, proxy_port
from tests.proxy.conftest import duet, start

__all__ = ["command", "duet", "folder", "launch", "ports", "profile", "proxy_port", "start"]
