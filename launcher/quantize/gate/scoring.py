"""Has a served model score records and answer a labelled task."""

from collections.abc import Sequence

from launcher.quantize.gate import reading, right
from launcher.quantize.gate.asking import Asker, BrokenAnswerError, Tell, all_of
from launcher.quantize.gate.records import Item, Record, Task
from launcher.quantize.gate.scores import WIDTH, RecordScores, Scores, TaskScores, damaged


async def score(url: str, model_name: str, records: Sequence[Record], task: Task | None, tell: Tell) -> Scores:
    """What the model ``model_name`` at ``url`` says of them.

    It must be served without a prefix cache, or at least compute prompts anew whose log-probabilities are asked for, as
    vLLM does. Log-probabilities that are missing or no numbers are told in the scores: so is a damaged model known.
    Raises :class:`launcher.errors.QuantizeError` when it does not answer or refuses.
    """
    async with Asker(url, model_name) as asker:

        async def scored(numbered: tuple[int, Record]) -> RecordScores:
            number, record = numbered
            body = {"prompt": list(record.ids), "max_tokens": 1, "prompt_logprobs": WIDTH}
            try:
                (choice,) = await asker.choices(body)
                return reading.record_scores(record, choice["prompt_logprobs"])
            except (BrokenAnswerError, reading.UnusableError) as exc:
                return damaged(f"record {number}: {exc}")

        done = await all_of(scored, enumerate(records), "scoring records", tell)
        return Scores(tuple(done), None if task is None else await _task_scores(asker, task, tell))


async def _task_scores(asker: Asker, task: Task, tell: Tell) -> TaskScores:
    async def answered(numbered: tuple[int, Item]) -> bool | str:
        number, item = numbered
        try:
            return await (_chosen if task.kind == "choice" else _generated)(asker, item)
        except (BrokenAnswerError, reading.UnusableError) as exc:
            return f"item {number} of the task: {exc}"

    done = await all_of(answered, enumerate(task.items), "answering the task", tell)
    chance = sum(1 / len(item.choices) for item in task.items if item.choices) / max(1, len(task.items))
    damage = tuple(each for each in done if isinstance(each, str))
    return TaskScores(task.kind, tuple(each is True for each in done), chance, damage)


async def _chosen(asker: Asker, item: Item) -> bool:
    prompts = [[*item.ids, *choice] for choice in item.choices]
    told = await asker.choices({"prompt": prompts, "max_tokens": 1, "prompt_logprobs": 0})
    likely = [
        reading.mean_logprob(prompt, len(item.ids), choice["prompt_logprobs"])
        for prompt, choice in zip(prompts, told, strict=True)
    ]
    return likely.index(max(likely)) == item.answer


async def _generated(asker: Asker, item: Item) -> bool:
    expected = str(item.answer)
    (choice,) = await asker.choices({"prompt": list(item.ids), "max_tokens": right.room_for(expected)})
    return right.is_right(str(choice["text"]), expected)
