"""Our driver against a real engine: its counts are the engine's own, and its times those of vLLM's own benchmark."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from launcher.measure.driver import drive
from launcher.measure.engines import counting
from launcher.measure.load import Closed
from launcher.measure.request import Request
from launcher.measure.target import Engine, Target
from tests.real.conftest import MODEL, Pair

PROMPTS, WORDS, TOKENS = 24, 32, 16
ALIKE = 4
"""Times that one median may be of the other: both clients and the engine share two cores."""

THEIRS = """
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = FlexibleArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""`vllm bench serve`, whose command does not start where vLLM's package has the CPU build's name."""


def requests(prompts: int) -> list[Request]:
    body = {"max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
    return [
        Request("completions", {"prompt": [10 + (7 * at + number) % 200 for at in range(WORDS)], **body})
        for number in range(prompts)
    ]


def decode(pair: Pair) -> Target:
    return Target("decode", pair.decode, MODEL, engines=(Engine("decode-0", "decode", f"{pair.decode}/metrics"),))


async def test_counts_are_the_engines_own(pair: Pair):
    samples, counted = await counting(decode(pair), drive(decode(pair), requests(12), Closed(3)))
    assert [each.error for each in samples] == [None] * 12
    assert {each.prompt_tokens for each in samples} == {WORDS}
    assert sum(each.tokens for each in samples) == 12 * TOKENS == counted.generated
    assert all(each.ttft and each.tpot and each.finish == "length" for each in samples)


async def test_times_through_the_pair_say_the_path(pair: Pair):
    samples = await drive(Target("pair", pair.proxy, MODEL), requests(4), Closed(2))
    assert {each.path for each in samples} == {"pd"}


async def test_figures_are_those_of_vllms_own_benchmark(pair: Pair, model_folder: Path, tmp_path: Path):
    await drive(decode(pair), requests(4), Closed(2))  # kernels are compiled
    options = {
        "--backend": "openai",
        "--base-url": pair.decode,
        "--model": MODEL,
        "--tokenizer": model_folder,
        "--dataset-name": "random",
        "--random-input-len": WORDS,
        "--random-output-len": TOKENS,
        "--num-prompts": PROMPTS,
        "--max-concurrency": 2,
        "--result-dir": tmp_path,
        "--result-filename": "theirs.json",
        "--seed": 1,
    }
    done = await asyncio.to_thread(
        subprocess.run,
        [
            *(sys.executable, "-c", THEIRS, "--ignore-eos", "--save-result"),
            *(str(part) for option in options.items() for part in option),
        ],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = json.loads((tmp_path / "theirs.json").read_text())
    ours = await drive(decode(pair), requests(PROMPTS), Closed(2))
    assert (theirs["completed"], theirs["total_output_tokens"]) == (PROMPTS, PROMPTS * TOKENS)
    assert (len(ours), sum(each.tokens for each in ours)) == (PROMPTS, PROMPTS * TOKENS)
    for name, values in (("ttft", [each.ttft or 0 for each in ours]), ("tpot", [each.tpot or 0 for each in ours])):
        ratio = 1000 * median(values) / theirs[f"median_{name}_ms"]
        assert 1 / ALIKE < ratio < ALIKE, (name, ratio)
