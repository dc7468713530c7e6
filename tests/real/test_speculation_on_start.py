"""`launcher up` tells whether speculation works, from the counters of a real engine."""

from pathlib import Path

import pytest
import yaml

from tests.launcher.local.deployments import launched

_START_BUDGET = 180


@pytest.mark.parametrize(
    ("speculation", "told"),
    [
        ({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1}, " accepted"),
        (
            {"method": "ngram", "num_speculative_tokens": 3, "schedule": [[1, 1, 0], [2, 8, 3]]},
            "its schedule drafts nothing for one request",
        ),
    ],
)
def test_up_tells_what_decode_drafted_and_accepted(pair_profile: Path, tmp_path: Path, speculation, told):
    content = yaml.safe_load(pair_profile.read_text()) | {"speculation": speculation}
    content["proxy"] |= {"port": 18001}
    profile = tmp_path / "speculating.yaml"
    profile.write_text(yaml.safe_dump(content))
    with launched(["up", str(profile)], tmp_path / "run", {}, tmp_path / "output") as running:
        running.wait_ready(_START_BUDGET)
        running.wait(lambda: told in running.output, patience=30)
