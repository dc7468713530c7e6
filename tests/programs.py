"""Programs that are not Python's, without which some tests cannot run."""

import os
import shutil

import pytest


def needs(program: str, package: str) -> pytest.MarkDecorator:
    """Skips with a notice where it is missing; where tests run by themselves (``CI=true``) that is a failure."""
    missing = shutil.which(program) is None and os.environ.get("CI") != "true"
    return pytest.mark.skipif(missing, reason=f"no {program} here; on Debian: apt-get install {package}")
