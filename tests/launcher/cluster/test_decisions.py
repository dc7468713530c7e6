"""Names, rollouts, what pods do, what changes, how long troubles may last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.cluster import names, rollout
from launcher.cluster.difference import changes
from launcher.cluster.patience import Patience
from launcher.cluster.progress import State, doings, when
from launcher.cluster.sight import Log, Sight
from launcher.cluster.trouble import Trouble
from tests.launcher.cluster.scripted import pod, replica_set, seen, workload


@pytest.mark.parametrize(
    ("profile", "release"),
    [
        ("demo", "demo"),
        ("api-throughput", "api-throughput"),
        ("Llama-3.1_70B", "llama-3-1-70b"),
        ("70b", "duet-70b"),
        ("_", "duet"),
        ("a" * 60, "a" * 53),
    ],
)
def test_a_release_is_called_as_nearly_as_its_profile_as_may_be(profile, release):
    assert names.release_of(profile) == release


@given(st.text())
def test_any_profile_has_a_release_that_helm_and_services_take(profile):
    found = names.release_of(profile)
    assert names.is_release(found)
    assert found[0].isalpha()
    assert "." not in found


@pytest.mark.parametrize("name", ["", "-x", "--debug", "A", "a_b", "a" * 54, "a/b", "a "])
def test_what_helm_would_take_for_something_else_is_no_release(name):
    assert not names.is_release(name)


def test_a_rollout_is_done_when_the_newest_version_serves_and_no_other_is_left():
    assert rollout.is_done(Sight([workload("decode"), workload("proxy")]))
    assert not rollout.is_done(Sight())
    behind = workload("decode", ready=1, wanted=2)
    assert rollout.missing(Sight([workload("proxy"), behind])) == ["pd-decode: 1 of 2 ready"]
    unseen = workload("decode", generation=2)
    assert rollout.waits_for(unseen) == "the cluster has not seen its new version yet"
    old = workload("decode")
    old["status"]["replicas"] = 2
    assert rollout.waits_for(old) == "1 pod of the version before"
    old["status"]["updatedReplicas"] = 0
    assert rollout.waits_for(old) == "0 of 1 pods are of the new version"


def test_instances_of_several_machines_are_done_when_all_of_them_are():
    group = {"kind": "LeaderWorkerSet", "metadata": {"name": "pd-decode", "generation": 3}, "spec": {"replicas": 2}}
    assert rollout.waits_for(group | {"status": {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1}})
    assert not rollout.waits_for(group | {"status": {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}})


def test_the_slowest_workload_decides_how_long_to_wait():
    assert rollout.deadline([workload("decode"), {"spec": {}}]) == 900
    assert rollout.deadline([]) == 600


def doing(found, *, sets=(), **more):
    [only] = doings(Sight([workload("decode")], sets, [found], **more), when("2026-11-30T10:00:00Z"))
    return only


@pytest.mark.parametrize(
    ("case", "state", "text"),
    [
        ("gpu", State.WAITING, "waits for a node"),
        ("image", State.WAITING, "has no image"),
        ("mount", State.WAITING, "being made"),
        ("crash", State.WAITING, "waits to be started again"),
        ("slow", State.STARTING, "importing vLLM"),
        ("good", State.READY, "ready"),
    ],
)
def test_what_a_pod_does_is_told(case, state, text):
    found = doing(pod("decode", case))
    assert (found.state, found.text) == (state, text)


def test_an_engines_log_tells_how_far_it_is():
    lines = ["non-default args: {}", "Resolved architecture: X", "Starting to load model", "50% Completed | 2/4"]
    slow = pod("decode", "slow")
    found = doing(slow, logs={slow["metadata"]["name"]: Log(lines)})
    assert found.text == "loading weights, 2 of 4 (50%)"
    assert found.step == "loading weights"
    assert 0.5 < found.fraction < 0.7


def test_an_image_that_is_being_pulled_is_named():
    pulls = pod("decode", "mount")
    pulls["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.32.0"
    event = {"reason": "Pulling", "message": 'Pulling image "vllm/vllm-openai:v0.32.0"'}
    assert doing(pulls, events={pulls["metadata"]["name"]: [event]}).text == "pulling vllm/vllm-openai:v0.32.0"


def test_a_pod_that_ends_tells_how_long_that_may_take():
    assert doing(pod("decode", ends="2026-11-30T10:01:30Z")).text == "drains, ends within 90 s"
    assert doing(pod("decode", ends="2026-11-30T09:00:00Z")).text == "drains, ends within 0 s"


def test_a_pod_of_the_version_before_is_told_apart():
    sets = [replica_set("decode", 1), replica_set("decode", 2)]
    assert doing(pod("decode", number=1), sets=sets).text == "ready, of the version before"
    assert doing(pod("decode", number=2), sets=sets).text == "ready"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, "waits for engines"),
        (
            {"ready": False, "modes": {"pd": False}, "instances": [{"healthy": True}, {"healthy": False}]},
            "waits for engines: 1 of 2 that it sees answer",
        ),
        ({"ready": True, "modes": {"pd": True}, "instances": []}, "serves; the cluster has not seen it yet"),
    ],
)
def test_a_proxy_tells_what_it_waits_for(said, text):
    proxy = pod("proxy", "slow")
    assert doing(proxy, proxies={proxy["metadata"]["name"]: said}).text == text


def test_a_pod_that_has_ended_is_told_as_such():
    evicted = seen("good")["pod"]
    evicted["status"] |= {"phase": "Failed", "reason": "Evicted"}
    found = doing(evicted)
    assert (found.state, found.text) == (State.ENDED, "evicted")


OLD = """\
kind: Service
metadata: {name: pd}
spec: {port: 8000, type: ClusterIP}
---
kind: Secret
metadata: {name: keys}
data: {a: c2VjcmV0LW9sZA==, b: c2FtZQ==}
---
kind: Role
metadata: {name: pd}
"""


def test_only_what_says_something_else_is_a_change():
    assert changes(OLD, OLD.replace("{port: 8000, type: ClusterIP}", "{type: ClusterIP, port: 8000}")) == []
    found = changes(OLD, OLD.replace("8000", "9000").replace("kind: Role", "kind: Job"))
    assert [(each.sign, each.of) for each in found] == [("+", "Job pd"), ("-", "Role pd"), ("~", "Service pd")]
    assert [line for line in found[2].lines if line[0] in "+-"] == ["-  port: 8000", "+  port: 9000"]


def test_no_text_of_a_secret_is_shown():
    [change] = changes(OLD, OLD.replace("c2VjcmV0LW9sZA==", "c2VjcmV0LW5ldw=="))
    assert change.of == "Secret keys"
    shown = "\n".join(change.lines)
    assert "-  a: (hidden)\n+  a: (hidden, another one)" in shown
    assert "c2" not in shown


def trouble(why, patience, fix="do it"):
    return Trouble("pd-decode", why, fix, patience)


def test_a_trouble_is_told_once_and_is_final_when_it_has_lasted():
    patience, first, later = Patience(), trouble("0 restarts", 10.0), trouble("1 restart", 10.0)
    assert patience.new([first], 0.0) == [first]
    assert patience.final([first], 9.0) == []
    assert patience.new([later], 10.0) == []
    assert patience.final([later], 10.0) == [later]


def test_a_trouble_that_went_away_begins_anew():
    patience, once = Patience(), trouble("away", 10.0)
    patience.new([once], 0.0)
    patience.new([], 5.0)
    patience.new([once], 8.0)
    assert patience.final([once], 12.0) == []
    assert patience.final([once], 18.0) == [once]


def test_the_time_in_which_it_may_end_by_itself_does_not_count():
    patience, open_end, other = Patience(), trouble("no room yet", None), trouble("no room", 10.0)
    patience.new([open_end], 0.0)
    patience.new([open_end], 50.0)
    patience.new([other], 51.0)
    assert patience.final([other], 59.0) == []
    assert patience.final([other], 60.0) == [other]


def test_what_may_end_by_itself_is_never_final():
    patience, open_end = Patience(), trouble("it may", None)
    patience.new([open_end], 0.0)
    assert patience.final([open_end], 1e9) == []
