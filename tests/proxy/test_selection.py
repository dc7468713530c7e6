"""Which instance is next."""

from proxy.config import ProxyConfig
from proxy.pool import Pool
from proxy.selection import least_in_flight
from proxy.topology import Instance, Role, Topology


def pool_of(count: int) -> Pool:
    pool = Pool(
        ProxyConfig(
            Topology(tuple(Instance(f"decode-{i}", Role.DECODE, f"http://127.0.0.1:{i}") for i in range(count)))
        )
    )
    for member in pool.members:
        member.healthy = True
    return pool


def take(pool: Pool) -> str:
    member = least_in_flight(pool.usable(Role.DECODE))
    with pool.using(member):
        return member.instance.name


def test_equals_take_turns():
    pool = pool_of(3)
    assert [take(pool) for _ in range(4)] == ["decode-0", "decode-1", "decode-2", "decode-0"]


def test_the_one_with_fewer_requests_in_flight_is_next():
    pool = pool_of(2)
    with pool.using(pool.members[0]):
        assert [take(pool), take(pool)] == ["decode-1", "decode-1"]


def test_an_instance_that_is_not_healthy_is_no_candidate():
    pool = pool_of(2)
    pool.members[0].healthy = False
    assert [take(pool), take(pool)] == ["decode-1", "decode-1"]


def test_no_candidates_no_choice():
    assert least_in_flight([]) is None
