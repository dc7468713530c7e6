"""Scores of models that exist on paper only."""

from array import array
from collections.abc import Sequence

import numpy as np

from launcher.quantize.gate.scores import WIDTH, RecordScores, Scores, TaskScores

VOCABULARY = 200


def scores(
    records: int = 64, positions: int = 60, *, noise: float = 0.0, seed: int = 0, task: TaskScores | None = None
) -> Scores:
    """Of a model with random logits, moved by so much ``noise``; the real tokens are always the same."""
    truth, moved = np.random.default_rng(1), np.random.default_rng(seed)
    made = []
    for _ in range(records):
        logits = truth.normal(0, 2, (positions, VOCABULARY))
        actual = [int(truth.choice(VOCABULARY, p=np.exp(each) / np.exp(each).sum())) for each in logits]
        made.append(record(logits + moved.normal(0, 1, logits.shape) * noise, actual))
    return Scores(tuple(made), task)


def record(logits: np.ndarray, actual: Sequence[int]) -> RecordScores:
    """What a model with these logits says where these tokens stand."""
    logprobs = np.round(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), 6)
    top = np.argsort(-logprobs, axis=1, kind="stable")[:, :WIDTH]
    return RecordScores(
        array("q", actual),
        array("d", logprobs[np.arange(len(actual)), list(actual)]),
        array("q", top.ravel().tolist()),
        array("d", np.take_along_axis(logprobs, top, axis=1).ravel()),
    )


def task(
    right: int, worse: int = 0, better: int = 0, items: int = 1000, chance: float = 0.25
) -> tuple[TaskScores, TaskScores]:
    """Of two models: the first has so many right, the second ``worse`` of these wrong and ``better`` others right."""
    before = [number < right for number in range(items)]
    after = [worse <= number < right + better for number in range(items)]
    return TaskScores("choice", tuple(before), chance), TaskScores("choice", tuple(after), chance)
