"""Why pods do not get ready: what a real cluster has told of each case."""

import pytest

from launcher.cluster.sight import Log, Sight
from launcher.cluster.stuck import of_pod, of_proxy, of_workload, troubles
from tests.launcher.cluster.scripted import SEEN, pod, replica_set, seen, workload

CASES = {
    "image": (
        "the image registry.invalid/vllm/vllm-openai:v0.32.0 cannot be had: failed to pull and unpack",
        "Is the name right (engine.image.repository, engine.image.tag)",
        0.0,
    ),
    "never": ("localhost/nothing:1 cannot be had", "Correct engine.image.repository and engine.image.tag", 0.0),
    "name": ("Not A Name cannot be had", "Correct engine.image.repository", 0.0),
    "gpu": (
        "no node takes it: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu; it asks for 2 nvidia.com/gpu",
        "Free nvidia.com/gpu, add nodes with it",
        60.0,
    ),
    "selector": ("it asks for gpu=h200", "Change engine.nodeSelector", 60.0),
    "claim": (
        "unbound immediate PersistentVolumeClaims; its claim: no persistent volumes available for this claim",
        "Give the claim a volume or a storage class",
        60.0,
    ),
    "noclaim": ('persistentvolumeclaim "models" not found', "Make the claim models", 60.0),
    "secret": (
        'the container engine cannot be made: secret "keys" not found',
        "Make it: kubectl --namespace dep-pods create secret generic keys",
        10.0,
    ),
    "key": ("couldn't find key HF_TOKEN in Secret", "Add the key HF_TOKEN to the Secret there", 10.0),
    "mount": ("a volume cannot be mounted: MountVolume.SetUp failed", "Make the Secret pd-tls", 60.0),
    "exec": ('exec: "python3": executable file not found', "Its image lacks that program", 0.0),
    "oom": ("needed more memory than it may have (16Mi)", "Raise engine.resources.limits.memory", 0.0),
    "probe": ("was not ready within 8 s of its start and was killed", "Raise startup_timeout", 0.0),
    "crash": ("ended with exit code 1, 4 restarts", "kubectl logs", 0.0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_the_fix_and_whether_waiting_helps_are_told(case):
    why, fix, patience = CASES[case]
    found = of_pod(SEEN[case]["pod"], SEEN[case]["events"], Log())
    assert found is not None
    assert why in found.why
    assert fix in found.fix
    assert (found.of, found.patience) == (SEEN[case]["pod"]["metadata"]["name"], patience)
    assert found.is_late == (case == "probe")


@pytest.mark.parametrize("case", ["good", "slow"])
def test_nothing_is_wrong_with_a_pod_that_only_needs_time(case):
    assert of_pod(SEEN[case]["pod"], SEEN[case]["events"], Log()) is None


def test_every_case_that_was_seen_is_judged():
    assert {*CASES, "good", "slow", "quota", "account"} == SEEN.keys()


def test_a_crash_is_told_with_its_last_lines_and_what_they_mean():
    before = ["no matter"] * 40 + ["ValueError: No available memory for the cache blocks."]
    found = of_pod(SEEN["crash"]["pod"], (), Log(now=["starting"], before=before))
    assert found.fix.startswith("Likely: the KV cache is too small")
    assert list(found.log) == before[-30:]


def test_the_first_crash_may_be_an_accident_the_second_is_none():
    crashed = seen("crash")["pod"]
    [status] = crashed["status"]["containerStatuses"]
    status["state"], status["restartCount"] = {"running": {}}, 1
    assert of_pod(crashed, (), Log()).patience is None
    status["restartCount"] = 2
    assert of_pod(crashed, (), Log()).patience == 0.0


def test_a_container_that_was_killed_is_told_as_such():
    killed = seen("crash")["pod"]
    killed["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] = 137
    events = [{"reason": "Killing", "message": "Container engine failed liveness probe, will be restarted"}]
    found = of_pod(killed, events, Log())
    assert "exit code 137 (SIGKILL), 4 restarts; it did not answer and was killed" in found.why


def test_a_first_failed_pull_may_be_an_accident():
    pulled = seen("image")["pod"]
    pulled["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = "ErrImagePull"
    assert of_pod(pulled, SEEN["image"]["events"], Log()).patience == 30.0


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("pull access denied, repository does not exist or may require authorization", "imagePullSecrets"),
        ("manifest unknown: not found", "or push it there"),
    ],
)
def test_what_a_registry_says_decides_what_to_do(said, fix):
    events = [{"reason": "Failed", "message": f'Failed to pull image "x": rpc error: code = NotFound desc = {said}'}]
    found = of_pod(SEEN["image"]["pod"], events, Log())
    assert fix in found.fix
    assert "rpc error" not in found.why


def test_the_image_of_the_proxy_is_another_key():
    assert "proxy.image.tag" in of_pod(pod("proxy", "image"), (), Log()).fix


def test_a_pod_without_a_node_may_wait_while_others_end_or_nodes_are_added():
    gpu = SEEN["gpu"]["pod"]
    assert of_pod(gpu, (), Log(), room=True).patience is None
    assert of_pod(gpu, [{"reason": "TriggeredScaleUp", "message": "pod triggered"}], Log()).patience is None


def test_a_kubelet_that_has_not_heard_yet_is_no_trouble():
    events = [{"reason": "FailedMount", "message": "failed to sync configmap cache: timed out waiting"}]
    assert of_pod(SEEN["mount"]["pod"], events, Log()) is None


@pytest.mark.parametrize(
    ("case", "fix"), [("quota", "kubectl describe quota"), ("account", "serviceAccount.create=true")]
)
def test_pods_that_are_refused_are_told_of_the_workload(case, fix):
    found = of_workload(SEEN[case]["workload"])
    assert found.of == f"pd-{case}"
    assert "is forbidden" in found.why
    assert fix in found.fix


def test_a_workload_that_makes_no_progress_is_late():
    late = workload("decode", ready=0)
    late["status"]["conditions"] = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
    found = of_workload(late)
    assert (found.why, found.is_late) == ("nothing went on for 900 s", True)
    assert of_workload(workload("decode")) is None


def test_a_proxy_that_may_not_see_pods_says_so():
    said = {"discovery": "the proxy may not see pods in the namespace llm (403: pods is forbidden): give its service"}
    found = of_proxy(pod("proxy"), said)
    assert found.why == "the proxy may not see pods in the namespace llm (403: pods is forbidden)"
    assert "rbac.create=true" in found.fix
    assert of_proxy(pod("proxy"), {"discovery": "as the cluster says"}) is None


def test_what_a_newer_version_replaces_is_no_trouble():
    sets = [replica_set("decode", 1), replica_set("decode", 2)]
    old, new = pod("decode", "oom", number=1), pod("decode", "slow", number=2)
    assert troubles(Sight([workload("decode")], sets, [old, new])) == []
    assert len(troubles(Sight([workload("decode")], sets, [pod("decode", "oom", number=2)]))) == 1


def test_nothing_is_said_of_pods_while_the_cluster_has_not_seen_the_new_version():
    unseen = workload("decode", generation=2, observed=1)
    assert troubles(Sight([unseen], [replica_set("decode", 1)], [pod("decode", "oom")])) == []
