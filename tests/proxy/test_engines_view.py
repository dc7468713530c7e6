"""``/metrics/engines``: the engines' own metrics under names that stay."""

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy import engine_instruments as known
from proxy.engine_instruments import MADE, TOLD
from proxy.engines_view import Look, families
from proxy.settings import Admin, Settings
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import eventually

SCRAPES = Path(__file__).parents[1] / "golden" / "scrapes"
LOOK = Look("decode-0", "decode", "", 0.5, "0.32.0", "tiny", None, None)
ALIVE = 'vllm:generation_tokens_total{engine="0",model_name="tiny"} 7\n'


def shown(text: str, **other: object) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Values by name and by the labels that do not say whose they are."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in families([replace(LOOK, text=text, **other)]):
        for sample in family.samples:
            assert (sample.labels["engine"], sample.labels["role"]) == ("decode-0", "decode")
            rest = {label: text for label, text in sample.labels.items() if label not in {"engine", "role"}}
            found.setdefault(sample.name, {})[tuple(sorted(rest.items()))] = sample.value
    return found


def recorded() -> list[Path]:
    files = sorted(SCRAPES.glob("vllm-*.txt"))
    assert files
    return files


def test_real_engines_between_them_tell_everything_in_the_table():
    told = {name for file in recorded() for name in shown(file.read_text())}
    wanted = {name for each in TOLD for name in each.samples.values()}
    assert wanted - told == set()


@pytest.mark.parametrize("file", recorded(), ids=lambda file: file.stem)
def test_values_are_the_engine_s(file: Path):
    text = file.read_text()
    of_engine = {s.name: s for family in text_string_to_metric_families(text) for s in family.samples}
    found = shown(text)
    for each in TOLD:
        for source, name in each.samples.items():
            if source in of_engine and not source.endswith("_bucket"):
                assert of_engine[source].value in found[name].values()
    assert found["duet_engine_up"] == {(): 1}
    assert next(iter(found["duet_engine_kv_cache_tokens"].values())) > 0


@pytest.mark.parametrize(("older", "today"), sorted(known.OLDER.items()))
def test_what_an_older_engine_calls_otherwise_has_the_same_name_here(older: str, today: str):
    label = '{le="0.5",engine="0"}' if older.endswith("_bucket") else '{engine="0"}'
    name = {source: name for each in TOLD for source, name in each.samples.items()}[today]
    assert shown(f"{ALIVE}{older}{label} 5\n")[name] == shown(f"{ALIVE}{today}{label} 5\n")[name]


def test_what_an_engine_has_under_both_names_is_shown_once():
    found = shown(ALIVE + 'vllm:gpu_cache_usage_perc{engine="0"} 0.2\nvllm:kv_cache_usage_perc{engine="0"} 0.3\n')
    assert found["duet_engine_kv_cache_usage_ratio"] == {(("rank", "0"),): 0.3}


def test_each_engine_of_a_data_parallel_instance_is_told_apart():
    lines = [f'vllm:generation_tokens_total{{engine="{rank}",model_name="m"}} {10 + rank}\n' for rank in range(3)]
    found = shown("".join(lines))["duet_engine_generation_tokens_total"]
    assert found == {(("model", "m"), ("rank", str(rank))): 10 + rank for rank in range(3)}


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "vllm:num_requests_running 1\n", ALIVE + "vllm:kv_cache_usage_perc{engine=} x\n", "\x00\n"],
    ids=["nothing", "no-metrics", "without-tokens", "broken-line", "control-character"],
)
def test_of_an_engine_that_tells_nothing_sensible_only_that_is_shown(text: str):
    assert shown(text, age=3.0) == {"duet_engine_up": {(): 0}, "duet_engine_metrics_age_seconds": {(): 3.0}}


def test_an_engine_that_never_told_anything_has_no_age():
    assert shown("", age=None) == {"duet_engine_up": {(): 0}}


def test_the_page_has_each_family_once_and_all_engines_in_it(tmp_path: Path):
    looks = [replace(LOOK, engine=f"decode-{number}", text=ALIVE) for number in range(3)]
    names = [family.name for family in families(looks)]
    assert len(names) == len(set(names))
    (generated,) = (f for f in families(looks) if f.name == "duet_engine_generation_tokens")
    assert [sample.labels["engine"] for sample in generated.samples] == ["decode-0", "decode-1", "decode-2"]


async def test_the_proxy_tells_what_its_engines_told(start):
    duet = await start(probe_interval=0.02)
    for each in ("prefill-0", "decode-0"):
        await eventually(lambda name=each: duet.engine_metric("duet_engine_up", engine=name), 1)
    body = {"model": "fake", "prompt": "a", "max_tokens": 5}
    assert (await duet.client.post("/v1/completions", json=body)).is_success
    generated = "duet_engine_generation_tokens_total"
    await eventually(lambda: duet.engine_metric(generated, engine="decode-0", role="decode"), 5)
    assert await duet.engine_metric("duet_engine_info", engine="decode-0", version="0.32.0", model="fake") == 1


async def test_acceptance_is_that_of_the_last_minute_and_starts_anew_with_the_engine(start):
    duet = await start(probe_interval=0.02)
    rate = lambda: duet.engine_metric("duet_engine_acceptance_rate", engine="decode-0")  # noqa: E731
    assert await rate() == 0
    assert "duet_engine_acceptance_rate" not in (await duet.client.get("/metrics/engines")).text

    def drafts(number: int, tokens: int, accepted: int) -> None:
        names = ("spec_decode_num_drafts", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")
        duet.decode.counts |= dict(zip(names, (number, tokens, accepted), strict=True))

    drafts(10, 40, 10)
    await eventually(rate, 0.25)
    assert await duet.engine_metric("duet_engine_mean_acceptance_length", engine="decode-0") == 2.0
    drafts(2, 8, 8)  # of another process: it has counted less
    await eventually(rate, 0)
    drafts(4, 16, 12)
    await eventually(rate, 0.5)
    assert await duet.engine_metric("duet_engine_mean_acceptance_length", engine="decode-0") == 3.0


async def test_of_an_engine_that_has_ended_nothing_goes_on(start):
    decode = FakeEngine("decode")
    duet = await start(
        engines=[FakeEngine("prefill"), decode], probe_interval=0.02, settings=Settings(frozen_after=0.2)
    )
    await eventually(lambda: duet.engine_metric("duet_engine_up", engine="decode-0"), 1)
    await decode.stop()
    await eventually(lambda: duet.engine_metric("duet_engine_up", engine="decode-0"), 0)
    text = (await duet.client.get("/metrics/engines")).text
    about = {line.partition("{")[0] for line in text.splitlines() if 'engine="decode-0"' in line}
    assert about == {"duet_engine_up", "duet_engine_metrics_age_seconds"}


async def test_clients_are_not_told_of_engines_where_operators_have_an_address(start):
    duet = await start(settings=Settings(admin=Admin(port=1)))
    assert (await duet.client.get("/metrics/engines")).status_code == 404


async def test_thresholds_of_alerts_are_told(start):
    duet = await start()
    assert await duet.metric("duet_alert_threshold", alert="ttft") == 0.5
    assert await duet.metric("duet_alert_threshold", alert="kv_transfer") == 0.05
    assert 'alert="tpot_without_speculation"' not in (await duet.client.get("/metrics")).text


def test_what_the_proxy_adds_has_names_of_its_own():
    names = [each.name for each in MADE] + [each.shown.name for each in TOLD]
    assert len(names) == len(set(names))
