"""A shipped profile that is changed anywhere still gives a plan, or a message that names the key."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from launcher import loader, planner, preflight
from launcher.errors import PlanError, ProfileError
from launcher.preflight.finding import Case, Layer
from launcher.profile import Profile
from tests.launcher.builders import MACHINE, RUN_DIRECTORY

PROFILES = {
    name: TypeAdapter(Profile).dump_python(loader.load(name), mode="json") for name in loader.shipped_profiles()
}
TRAPS = (
    "no",
    "yes",
    "on",
    "off",
    "~",
    "1e5",
    "08000",
    "0o17",
    "12:30",
    "true",
    "",
    " ",
    "x" * 500,
    "é",
    "-",
    "[",
    "\t",
    "\n",
    "%n",
    "$A",
)
VALUES = (
    st.sampled_from(
        [None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 0.5, -0.5, 1e5, 1e300, [], {}, [1], {"a": 1}, *TRAPS]
    )
    | st.integers(-10, 100_000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["cpu", "cuda", "nixl-push", "shared-storage", "mooncake", "fp8", "mtp", "ngram", "/tmp", "a/b"])
)


def paths(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*above, key)
            yield from paths(item, (*above, key))


KEYS = [
    (name, path) for name, profile in PROFILES.items() for path in paths(profile) if path[:2] != ("proxy", "objectives")
]


def written(folder, name: str, path: tuple[str, ...], value: object) -> str:
    """A profile that changes one key of a shipped one."""
    for key in reversed(path):
        value = {key: value}
    file = folder / "mutated.yaml"
    file.write_text(json.dumps({"extends": name, **value}))  # JSON is YAML
    return str(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mutations")


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(KEYS), VALUES)
@example(("demo", ("roles", "prefill", "replicas")), 40)
@example(("demo", ("ports", "engine")), 65535)
@example(("api-throughput", ("roles", "decode", "devices")), [0, 0])
@example(("interactive", ("roles", "aggregated", "env")), {"A": "1"})
@example(("demo", ("model", "served_name")), "\n")
def test_a_change_in_any_key_gives_a_plan_or_a_message_with_the_key(folder, key, value):
    name, path = key
    reference = written(folder, name, path, value)
    messages = said(reference)
    assert all(message.startswith((f"{reference}:", path[0])) for message in messages), messages
    assert not messages or any(_names(message, path) for message in messages), (path, messages)


def said(reference: str) -> list[str]:
    """The reasons why there is no plan; none when there is one, which preflight can judge."""
    try:
        resolved = loader.resolve(reference)
        plan = planner.plan(resolved.profile, MACHINE, name="mine", run_directory=RUN_DIRECTORY)
    except (ProfileError, PlanError) as exc:
        return [*exc.messages]
    case = Case(resolved.profile, plan, MACHINE, {}, resolved.document)
    for finding in preflight.judge(case, {Layer.STATIC, Layer.MEMORY}):
        assert finding.fault.key
        assert finding.fault.fix
    assert all(isinstance(part, str) and "\0" not in part for engine in plan.engines for part in engine.argv)
    return []


def _names(message: str, path: tuple[str, ...]) -> bool:
    """Whether it names the key, one above that the change spoiled as a whole, or the two that exclude each other."""
    return any(".".join(path[:depth]) in message for depth in range(len(path), 0, -1))


def test_every_key_of_every_profile_can_be_changed():
    assert {name for name, _ in KEYS} == set(loader.shipped_profiles())
    assert len(KEYS) > 400
