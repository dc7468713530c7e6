"""Live records are compared with the calibration of a checkpoint, and what was found is kept and exported."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import QuantizeError
from launcher.quantize import checked
from launcher.quantize.check import check
from launcher.quantize.drift import Level
from launcher.quantize.gate.shape import Judgement, Verdict
from tests.launcher.quantize.outcomes import PASSED
from tests.launcher.quantize.test_drift import WORDS, prompts, told

HELD_OUT = [{"ids": [1, 2, 3], "scored": [[1, 3]]}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small-int8/duet").mkdir(parents=True)
    calibration = told(prompts(200, random.Random(1), median=30))
    (tmp_path / "small-int8/duet/calibration.json").write_text(json.dumps(calibration))
    return tmp_path / "small-int8"


class Live:
    """Stands in for the worker."""

    def __init__(self, first: int = 0, count: int = 200) -> None:
        self.jobs: list[Mapping[str, Any]] = []
        self._prompts = prompts(count, random.Random(2), first=first, median=30)

    def __call__(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        self.jobs.append(job)
        return {"distribution": told(self._prompts), "held_out": HELD_OUT, "facts": {"used": len(self._prompts)}}


def judged(verdict: Verdict):
    """Stands in for both models being served."""
    judgement = PASSED.attempts[-1].judgement
    assert judgement is not None

    def judge(held_out: Sequence[Mapping[str, Any]]) -> Judgement:
        assert held_out == HELD_OUT
        return replace(judgement, verdict=verdict, reasons=("It differs by 0.028 nats.",))

    return judge


def test_the_worker_counts_live_records_by_the_checkpoints_tokenizer(folder: Path):
    live = Live()
    found = check(folder, Path("recent.jsonl"), count=live, seed=4)
    assert live.jobs == [
        {
            "step": "count",
            "model": str(folder),
            "live": str(Path.cwd() / "recent.jsonl"),
            "records": 512,
            "max_tokens": 2048,
            "seed": 4,
        }
    ]
    assert (found.level, found.judgement, found.facts) == (Level.FINE, None, {"used": 200})


def test_what_was_found_is_kept_with_the_checkpoint(folder: Path):
    assert checked.last(folder) is None
    found = check(folder, Path("recent.jsonl"), count=Live(first=WORDS))
    kept = checked.last(folder)
    assert kept is not None
    assert (kept.level, kept.reasons) == (Level.ALERT, found.reasons)
    assert "much different" in kept.reasons[0]


def test_a_checkpoint_that_may_not_be_written_to_is_checked_all_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "checked.json")

    monkeypatch.setattr(checked, "keep", refuse)
    found = check(folder, Path("recent.jsonl"), count=Live())
    assert found.notes == (
        "checked.json: cannot be written (Permission denied): `launcher doctor` will not know of this check",
    )


@pytest.mark.parametrize(
    ("verdict", "first", "level", "said"),
    [
        (Verdict.PASS, WORDS, Level.WARNING, "On live records the quantized model is still as good as the original."),
        (Verdict.FAIL, 0, Level.ALERT, "It differs by 0.028 nats."),
        (Verdict.INCONCLUSIVE, 0, Level.FINE, "Live prompts look like those of the calibration"),
    ],
)
def test_answers_count_more_than_prompts(folder: Path, verdict: Verdict, first: int, level: Level, said: str):
    found = check(folder, Path("recent.jsonl"), count=Live(first), judge=judged(verdict))
    assert found.level is level
    assert found.reasons[0].startswith(said)


def test_metrics_are_written_for_the_node_exporter(folder: Path, tmp_path: Path):
    found = check(
        folder, Path("r"), count=Live(first=WORDS), judge=judged(Verdict.PASS), metrics_file=tmp_path / "duet.prom"
    )
    text = (tmp_path / "duet.prom").read_text()
    assert f'duet_quantization_drift_ratio{{model="small-int8"}} {found.drift.ratio}\n' in text
    assert f'duet_quantization_length_psi{{model="small-int8"}} {found.drift.length_psi}\n' in text
    assert 'duet_quantization_live_records{model="small-int8"} 200.0\n' in text
    assert 'duet_quantization_kl{model="small-int8"} 0.0276\n' in text
    assert "duet_quantization_checked_timestamp_seconds{" in text


def test_of_too_few_records_and_models_not_served_no_figure_is_exported(folder: Path, tmp_path: Path):
    found = check(folder, Path("r"), count=Live(count=20), metrics_file=tmp_path / "duet.prom")
    text = (tmp_path / "duet.prom").read_text()
    assert found.level is Level.UNKNOWN
    assert 'duet_quantization_live_records{model="small-int8"} 20.0\n' in text
    assert "ratio" not in text
    assert "kl" not in text


def test_metrics_that_cannot_be_written_are_an_error(folder: Path, tmp_path: Path):
    with pytest.raises(QuantizeError, match=r"duet\.prom: cannot be written \(No such file or directory\)"):
        check(folder, Path("r"), count=Live(), metrics_file=tmp_path / "nowhere/duet.prom")


@pytest.mark.parametrize(
    ("content", "told_"),
    [
        (None, r"cannot be read \(No such file.*a folder that `launcher quantize` has published"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"counts": {}}', "has no lengths, max_tokens, overdispersion, p99, records: it is of another version"),
    ],
)
def test_a_folder_that_does_not_know_its_calibration_is_refused(folder: Path, content: str | None, told_: str):
    file = folder / "duet/calibration.json"
    file.unlink()
    if content is not None:
        file.write_text(content)
    with pytest.raises(QuantizeError, match=told_):
        check(folder, Path("r"), count=Live())
