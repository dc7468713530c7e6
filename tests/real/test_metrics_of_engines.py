"""Real engines tell what the table of their metrics says; the recorded scrapes that fast tests read are like today's.

After an upgrade of vLLM: ``DUET_UPDATE_GOLDEN=1 scripts/test tests/real/test_metrics_of_engines.py``, and read the
difference: what has another name belongs into ``proxy/engine_instruments.py``, the old one into its ``OLDER``.
"""

import os
from pathlib import Path

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.real.conftest import Pair
from tests.real.engines import engine

SCRAPES = Path(__file__).parents[1] / "golden" / "scrapes"
PROMPT = "one two three four five six seven eight " * 8


def shape(text: str) -> dict[str, set[tuple[str, ...]]]:
    """The names of vLLM's samples and of their labels; not the values, nor which buckets there are."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith(("vllm:", "process_")):
                found.setdefault(sample.name, set()).add(tuple(sorted(sample.labels)))
    return found


def assert_is_recorded(url: str, name: str) -> None:
    version = httpx.get(f"{url}/version", trust_env=False).json()["version"].partition("+")[0]
    text = httpx.get(f"{url}/metrics", trust_env=False).text
    file = SCRAPES / f"vllm-{version}-{name}.txt"
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    told = shape(text)  # more than was recorded where more was asked of it: some appear with what they count
    gone = {name for name, labels in shape(file.read_text()).items() if not labels <= told.get(name, set())}
    assert gone == set()


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_engines_of_a_pair_tell_what_was_recorded(pair: Pair, through_proxy: openai.OpenAI, name: str):
    through_proxy.completions.create(model="tiny", prompt=PROMPT, max_tokens=4)
    assert_is_recorded({"prefill": pair.prefill, "decode": pair.decode}[name], name)


def test_an_engine_that_speculates_tells_what_was_recorded(pair_profile: Path, tmp_path: Path):
    speculation = ["speculation.method=ngram", "speculation.num_speculative_tokens=3"]
    with engine(pair_profile, "decode-0", 18190, speculation, tmp_path) as running:
        body = {"model": "tiny", "prompt": PROMPT, "max_tokens": 16, "temperature": 0}
        assert httpx.post(f"{running.url}/v1/completions", json=body, trust_env=False, timeout=60).is_success
        assert_is_recorded(running.url, "ngram")
