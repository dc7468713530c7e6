"""Two legs that run at the same time."""

import asyncio
from contextlib import suppress

import pytest

from proxy.side_by_side import ended, side_by_side


class Lost(Exception):
    pass


async def fails() -> None:
    raise Lost


async def for_ever() -> None:
    await asyncio.Event().wait()


async def result() -> str:
    return "result"


class Discarded:
    def __init__(self) -> None:
        self.results: list[object] = []

    async def __call__(self, result: object) -> None:
        self.results.append(result)


async def test_the_second_s_result_is_there_while_the_first_still_runs():
    found, leading = await side_by_side(for_ever(), result(), Discarded())
    assert (found, leading.done()) == ("result", False)
    await ended(leading)
    assert leading.cancelled()


@pytest.mark.parametrize("legs", [(fails, for_ever), (for_ever, fails), (fails, fails)])
async def test_when_one_fails_the_other_is_ended(legs):
    first, second = legs
    with pytest.raises(Lost):
        await side_by_side(first(), second(), Discarded())
    assert len(asyncio.all_tasks()) == 1


async def test_when_both_have_failed_it_is_the_first_that_counts():
    async def other() -> None:
        raise KeyError

    with pytest.raises(Lost):
        await side_by_side(fails(), other(), Discarded())
    with pytest.raises(KeyError):
        await side_by_side(other(), fails(), Discarded())


async def test_a_result_counts_more_than_the_first_s_failure_at_the_same_moment():
    found, leading = await side_by_side(fails(), result(), Discarded())
    assert found == "result"
    await ended(leading)


async def test_who_is_cancelled_ends_both_and_discards_a_result_that_nobody_gets():
    discarded, moment = Discarded(), asyncio.Event()

    async def late() -> str:
        with suppress(asyncio.CancelledError):  # it has its result already
            await moment.wait()
        return "result"

    task = asyncio.create_task(side_by_side(for_ever(), late(), discarded))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert discarded.results == ["result"]
    assert len(asyncio.all_tasks()) == 1
