"""Decision: what people are told of a deployment, as the proxy shows it."""

import json

from launcher.advice.rule import Stage
from launcher.profile import Profile


def techniques(profile: Profile) -> list[str]:
    """Which accelerations a profile uses, by their short names."""
    quantization = profile.quantization.checkpoint_scheme or profile.quantization.weights
    return [
        *([] if quantization == "checkpoint" else [quantization.upper()]),
        *([f"speculation ({profile.speculation.method})"] if profile.speculation else []),
        *(["PD"] if profile.roles.prefill else []),
    ]


def stage(profile: Profile) -> Stage | None:
    """The last one, in the order in which techniques are introduced, of which the profile uses one."""
    if profile.roles.prefill:
        return Stage.PD
    if profile.speculation:
        return Stage.SPECULATION
    return Stage.QUANTIZATION if techniques(profile) else None


def about(profile: Profile, name: str) -> str:
    """``about.json`` of a profile of which the advisor has said nothing yet."""
    document = {
        "profile": name,
        "description": profile.description,
        "techniques": techniques(profile),
        "stage": stage(profile),
        "advice": None,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
