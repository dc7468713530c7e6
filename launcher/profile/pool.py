"""Further pools of instances: the same model under the same names, with other weights or settings."""

from pydantic import JsonValue

from launcher.profile.model import Model
from launcher.profile.operation import Secrets
from launcher.profile.quantization import Quantization
from launcher.profile.roles import Roles
from launcher.profile.shape import EnvironmentName, Shape
from launcher.profile.speculation import Speculation


class Pool(Shape):
    """Instances beside the main ones. Only what is different is written; all else is as in the profile itself.

    Mappings merge, anything else replaces, and null takes away. A model that is named replaces the profile's.
    """

    model: Model
    """Other weights; the names that clients use stay."""
    roles: Roles
    quantization: Quantization
    """Of all roles of the pool."""
    speculation: Speculation | None = None
    """Of all roles of the pool."""
    engine_args: dict[str, JsonValue] = {}
    """Further vLLM options of the pool's engines."""
    env: dict[EnvironmentName, str] = {}
    """Added to the environment of the pool's engines."""
    secrets: Secrets = {}
    """Variables of the pool's engines whose text is elsewhere."""
