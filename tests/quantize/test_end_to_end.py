"""Calibrate, quantize, judge, publish; then served with prefill and decode apart."""

import json

import httpx
import pytest
import yaml

from launcher import model_folder
from launcher.preflight.checkpoints.weight_scheme import schemes_of
from tests.launcher.local.deployments import launched

_START_BUDGET = 240
_PROMPT = "Anna wants a red lamp for the hall. What does it cost? " * 8


@pytest.mark.parametrize(("scheme", "bits", "activations"), [("int8", 8, 8), ("int4", 4, 16)])
def test_what_is_as_good_as_the_original_is_published(scheme, bits, activations, request):
    run = request.getfixturevalue(scheme)
    assert run.code == 0, run.output
    assert "PASS: " in run.output
    assert run.report["verdict"] == "pass"
    (attempt,) = run.report["attempts"]
    assert all(guard["is_ok"] for guard in attempt["guards"])
    assert attempt["judgement"]["noise"] < 0.001
    assert run.report["versions"].keys() >= {"duet", "vllm", "llmcompressor", "torch"}

    folder = model_folder.read(run.out)
    found = schemes_of(folder)("model.layers.0.self_attn.q_proj")
    assert (found.bits, found.activation_bits) == (bits, activations)
    manifest = json.loads((run.out / "duet" / "manifest.json").read_text())
    assert manifest["verdict"] == "pass"
    assert not run.out.with_name(f"{run.out.name}.work").exists()


def test_too_few_items_show_nothing_and_the_number_needed_is_told(fp8):
    assert fp8.code == 0, fp8.output
    assert "INCONCLUSIVE: " in fp8.output
    assert "Published although it did not pass" in fp8.output
    assert fp8.report["forced"] is True
    task = fp8.report["attempts"][0]["judgement"]["task"]
    assert task["items"] == 40
    assert task["needed"] > 40


def test_no_text_of_the_records_is_published(int8, fp8):
    for run in (int8, fp8):
        papers = [*(run.out / "duet").iterdir(), *run.out.with_name(f"{run.out.name}.report").iterdir()]
        assert not [file.name for file in papers if "Clara" in file.read_text()]


def test_each_is_served_by_its_own_pair_and_its_kv_moves(model, int8, int4, fp8, tmp_path):
    role = {"kv_cache_memory": "64MiB", "enforce_eager": True}
    pools = {name: {"model": {"path": str(run.out)}} for name, run in (("int8", int8), ("int4", int4))}
    profile = {
        "description": "Each precision of one model, by request",
        "device": "cpu",
        "model": {"path": str(fp8.out), "served_name": "shop", "dtype": "bfloat16", "max_model_len": 512},
        "roles": {"prefill": role, "decode": role},
        "pools": pools,
        "proxy": {
            "port": 18000,
            "canary": {"enabled": False},
            "pools": {
                "rules": [
                    {"pool": name, "when": {"header": {"x-precision": name}}, "fallback": "refuse"} for name in pools
                ]
            },
        },
        "ports": {"engine": 18100, "side_channel": 15600},
        "startup_timeout": _START_BUDGET,
    }
    path = tmp_path / "three.yaml"
    path.write_text(yaml.safe_dump(profile))
    with launched(["up", str(path)], tmp_path / "run", {}, tmp_path / "output") as running:
        running.wait_ready(_START_BUDGET)
        urls = {each["name"]: each["url"] for each in running.state()["instances"]}
        decodes = {"fp8": "decode-0", "int8": "decode-int8-0", "int4": "decode-int4-0"}
        for precision, decode in decodes.items():
            before = _moved(urls[decode])
            body = {"model": "shop", "prompt": f"{precision}: {_PROMPT}", "max_tokens": 8, "temperature": 0}
            headers = {"x-precision": precision}
            answer = httpx.post(
                f"{urls['proxy']}/v1/completions", json=body, headers=headers, timeout=60, trust_env=False
            )
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-duet-path"] == "pd"
            assert answer.json()["choices"][0]["text"]
            assert _moved(urls[decode]) > before, precision


def _moved(url):
    counter = 'vllm:prompt_tokens_by_source_total{engine="0",model_name="shop",source="external_kv_transfer"} '
    lines = httpx.get(f"{url}/metrics", trust_env=False).text.splitlines()
    return float(next(line.removeprefix(counter) for line in lines if line.startswith(counter)))
