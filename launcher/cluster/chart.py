"""Where the chart is that comes with Duet."""

from importlib import resources
from pathlib import Path


def shipped() -> Path:
    """In an installed package, else in the checkout."""
    packaged = Path(str(resources.files("launcher"))) / "chart"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "helm"
