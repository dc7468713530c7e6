"""What one request says of its arm, and what the guards make of many."""

import math
from random import Random

import pytest

from proxy.endpoint import Endpoint
from proxy.experiment.guards import guard
from proxy.experiment.measured import Excluded, measured
from proxy.experiment.recent import Recent
from proxy.experiment.sums import ArmSums, Cell, dumped, loaded, total
from proxy.headers import RequestId
from proxy.record import Outcome, Record
from proxy.split import Experiment, Guards
from proxy.usage import Usage

EXPERIMENT = Experiment("main", "int8", ttft=0.5, tpot=0.1)


def record(*, ttft: float | None = None, tokens: int | None = None, **more: object) -> Record:
    made = Record(RequestId("a", "a"), Endpoint.CHAT, started=100.0, **more)
    made.first_byte = None if ttft is None else 100.0 + ttft
    made.usage = None if tokens is None else Usage(1, tokens)
    return made


@pytest.mark.parametrize(
    ("made", "ended", "good"),
    [
        (record(ttft=0.5, tokens=11), 101.5, True),
        (record(ttft=0.6, tokens=11), 101.5, False),
        (record(ttft=0.5, tokens=11), 101.6, False),
        (record(ttft=0.5), 200.0, True),  # how fast its tokens came is not known
        (record(tokens=11), 101.5, True),
        (record(tokens=11), 101.6, False),
        (record(), 200.0, True),
        (record(ttft=0.1, tokens=1), 200.0, True),
        (record(ttft=0.1, tokens=11, has_one_choice=False), 200.0, True),
    ],
)
def test_a_request_is_good_when_it_meets_what_can_be_measured(made, ended, good):
    cell = measured(made, Outcome.OK, ended, EXPERIMENT)
    assert (cell.n, cell.failed, bool(cell.good)) == (1, 0, good)


def test_times_are_kept_as_logarithms():
    cell = measured(record(ttft=0.5, tokens=11), Outcome.OK, 101.5, EXPERIMENT)
    assert (cell.streamed, cell.paced) == (1, 1)
    assert cell.ttft == pytest.approx(math.log(0.5))
    assert cell.tpot == pytest.approx(math.log(0.1))
    assert cell.tpot_squares == pytest.approx(math.log(0.1) ** 2)
    assert measured(record(ttft=0.0), Outcome.OK, 100.0, EXPERIMENT).ttft < -10


@pytest.mark.parametrize(
    ("made", "outcome", "ended", "says"),
    [
        (record(ttft=0.1, fell_back_from="int8"), Outcome.OK, 101, Excluded.FELL_BACK),
        (record(), Outcome.REJECTED, 101, Excluded.REJECTED),
        (record(), Outcome.REFUSED, 101, Excluded.REFUSED),
        (record(ttft=0.1, failure="ShuttingDown"), Outcome.BROKEN_OFF, 101, Excluded.REFUSED),
        (record(), Outcome.LEFT, 100.4, Excluded.LEFT),
        (record(), Outcome.LEFT, 100.6, Cell(1, failed=1)),
        (record(failure="error"), Outcome.FAILED, 101, Cell(1, failed=1)),
    ],
)
def test_ends_that_are_no_answer(made, outcome, ended, says):
    assert measured(made, outcome, ended, EXPERIMENT) == says


def test_a_client_that_left_in_the_middle_shows_its_ttft_only():
    cell = measured(record(ttft=0.1, tokens=5), Outcome.LEFT, 200.0, EXPERIMENT)
    assert (cell.good, cell.streamed, cell.paced) == (1, 1, 0)


def test_sums_come_back_as_they_were_and_add_up():
    one = {"main": ArmSums({3: Cell(2, 1, 1, 1, -0.5, 0.25)}, {"left": 1}), "int8": ArmSums()}
    assert loaded(dumped(one)) == one
    both = total([one, loaded(dumped(one))])
    assert both["main"].cells == {3: Cell(4, 2, 2, 2, -1.0, 0.5)}
    assert both["main"].excluded == {"left": 2}
    with pytest.raises(ValueError, match="validation error"):
        loaded(b"[]")


def test_the_last_minute_is_what_came_since():
    recent, arm, none = Recent(), ArmSums(), ArmSums()
    arm.add(1, Cell(1000))
    assert recent.look(0, arm, none) == (Cell(), Cell())
    arm.add(1, Cell(5, 5))
    arm.exclude("fell_back", 2)
    arm.exclude("refused", 7)
    assert recent.look(30, arm, none)[0] == Cell(7, 7)
    assert recent.look(59, arm, none)[0] == Cell(7, 7)
    assert recent.look(95, arm, none)[0] == Cell()


def arm(random: Random, requests: int, failing: float, ttft: float) -> ArmSums:
    made = ArmSums()
    for _ in range(requests):
        failed, took = int(random.random() < failing), random.gauss(math.log(ttft), 0.7)
        made.add(random.randrange(200), Cell(1, failed, 1 - failed, 1, took, took**2))
    return made


def test_guards_hardly_ever_end_what_is_as_good():
    ended = 0
    for seed in range(200):
        random = Random(seed)
        a, b = ArmSums(), ArmSums()
        for _ in range(10):
            for arms in (a, b):
                for bucket, cell in arm(random, 60, 0.05, 0.2).cells.items():
                    arms.add(bucket, cell)
            if guard(a, b, Cell(), Cell(), EXPERIMENT) is not None:
                ended += 1
                break
    assert ended <= 2


@pytest.mark.parametrize(("failing", "ttft", "which"), [(0.15, 0.2, "errors"), (0.01, 0.5, "ttft")])
def test_guards_end_what_is_worse_beyond_the_limit(failing, ttft, which):
    random = Random(1)
    found = guard(arm(random, 600, 0.01, 0.2), arm(random, 300, failing, ttft), Cell(), Cell(), EXPERIMENT)
    assert found is not None
    assert found.guard == which


def test_limits_of_guards_are_those_of_the_experiment():
    random = Random(1)
    lax = Experiment("main", "int8", guards=Guards(errors=0.5, ttft=10))
    assert guard(arm(random, 600, 0.01, 0.2), arm(random, 300, 0.15, 0.5), Cell(), Cell(), lax) is None


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (Cell(100, 2), Cell(20, 12), "12 of the last 20 requests of int8 failed, and 2 of 100 of main"),
        (Cell(), Cell(20, 20), "20 of the last 20 requests"),
        (
            Cell(streamed=60, ttft=-60.0),
            Cell(streamed=60, ttft=0.0),
            "int8's was 2.7 times main's within the last 60 s",
        ),
        (Cell(100, 80), Cell(20, 12), None),  # all is broken
        (Cell(100), Cell(19, 19), None),
        (Cell(100), Cell(20, 9), None),
        (Cell(streamed=60, ttft=-60.0), Cell(streamed=40, ttft=0.0), None),
        (Cell(streamed=60, ttft=-30.0), Cell(streamed=60, ttft=0.0), None),
    ],
)
def test_what_breaks_down_just_now_is_seen_whatever_was_before(a, b, said):
    well = ArmSums({bucket: Cell(1000, 0, 1000) for bucket in range(100)})
    found = guard(well, well, a, b, EXPERIMENT)
    assert (found and said in found.reason) if said else found is None
