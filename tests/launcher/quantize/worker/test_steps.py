"""The steps that read records, by an interpreter that knows nothing of Duet."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launcher.quantize import worker
from launcher.quantize.worker.duet_quantizing import prepare
from launcher.quantize.worker.duet_quantizing.rendering import Renderer
from launcher.quantize.worker.duet_quantizing.telling import RefusedError
from tests.launcher.quantize.worker.records import Heard, chat, sentences, write
from tests.launcher.quantize.worker.small_tokenizer import write_tokenizer
from tests.launcher.quantize.worker.tokenizer import Words

_PROGRAM = """
import json, sys
from duet_quantizing.count import count
from duet_quantizing.prepare import prepare
from duet_quantizing.telling import Tell

def run(step, result, **job):
    with open(result, "w") as file:
        json.dump(step({"model": sys.argv[1], "seed": 0, "max_tokens": 256, **job}, Tell()), file)

assert not any(name.split(".")[0] in ("launcher", "proxy") for name in sys.modules)
run(prepare, "one", calibration="traffic", records=100, held_out=64, task="task", force=False)
run(prepare, "other", calibration="traffic", records=100, held_out=64, task=None, force=False)
run(count, "live", live="traffic", records=100)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the steps gave, by a real tokenizer."""
    folder = tmp_path_factory.mktemp("steps")
    texts = sentences(400, words=20)
    secret = chat("Mail me: jane@example.org, key sk-" + "a1b2c3d4" * 4, "No.")
    write(folder / "traffic", [*(chat(text, f"That is {text[:20]}") for text in texts), secret, "not JSON", secret])
    write(folder / "task", [{"prompt": "2+2=", "choices": ["4", "5"], "answer": 0}])
    write_tokenizer(folder / "model")
    subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM, str(folder / "model")],
        env={"PYTHONPATH": str(Path(worker.__file__).parent), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return {name: json.loads((folder / name).read_text()) for name in ("one", "other", "live")}


def test_records_become_token_ids_with_the_answers_known(results: dict[str, dict[str, Any]]):
    found = results["one"]
    assert (len(found["calibration"]), len(found["held_out"])) == (100, 64)
    assert all(len(ids) <= 256 for ids in found["calibration"])
    for held in found["held_out"]:
        [[start, end]] = held["scored"]
        assert 0 < start < end <= len(held["ids"])
    assert found["task"]["kind"] == "choice"
    assert len(found["task"]["items"][0]["choices"]) == 2


def test_facts_are_numbers_and_no_text(results: dict[str, dict[str, Any]]):
    facts = results["one"]["facts"]
    assert (facts["read"], facts["unreadable"], facts["duplicates"]) == (403, 1, 1)
    assert facts["faults"] == [{"line": 402, "why": "not JSON: Expecting value at column 1"}]
    assert (facts["used"], facts["held_out"], facts["chat_template"]) == (100, 64, True)
    assert facts["tokens"] == sum(map(len, results["one"]["calibration"]))
    assert set(facts["secrets"]) <= {"e-mail address", "API key"}
    assert "jane" not in json.dumps(facts) + json.dumps(results["one"]["distribution"])


def test_the_same_job_gives_the_same_result(results: dict[str, dict[str, Any]]):
    assert results["one"] | {"task": None} == results["other"]


def test_live_records_are_counted_as_those_of_the_calibration_are(results: dict[str, dict[str, Any]]):
    assert results["live"]["distribution"] == results["one"]["distribution"]
    assert results["live"]["held_out"] == results["one"]["held_out"]


def test_records_that_the_template_refuses_alone_are_no_calibration(tmp_path: Path):
    file = write(tmp_path / "f", [{"messages": [{"role": "critic", "content": "Bad."}]}])
    job = {"records": 10, "max_tokens": 10, "seed": 0}
    with pytest.raises(RefusedError, match=r"none of its 1 records can be calibrated with \(1 refused by the chat"):
        prepare.take(job, str(file), Renderer(Words()), Heard())
