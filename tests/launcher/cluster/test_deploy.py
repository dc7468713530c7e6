"""Deploying, rolling back and taking away, with a Helm and a cluster that answer by script."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from launcher.cluster import chart
from launcher.cluster.api import Cluster
from launcher.cluster.deploy import Deployer, Wanted
from launcher.cluster.helm import Helm
from launcher.cluster.wait import Clock
from launcher.errors import ClusterError, NotReadyError, ReleaseError, UnseenError
from tests.launcher.cluster.scripted import ScriptedCluster, ScriptedHelm, pod, replica_set, seen, workload

ROOT = Path(__file__).parents[3]
PLAN = {"plan": {"engines": {"decode": {"progressDeadlineSeconds": 120}}}}
OLD = "kind: Service\nmetadata: {name: pd-proxy}\nspec: {port: 7000}\n"
NOW = time.mktime((2026, 11, 30, 10, 0, 0, 0, 0, 0))


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    found = ScriptedCluster()
    yield found
    found.close()


@pytest.fixture
def helm(tmp_path: Path) -> ScriptedHelm:
    return ScriptedHelm(tmp_path)


class Here:
    """The stories, what they say, and a clock on which nobody waits."""

    def __init__(self, cluster: ScriptedCluster, helm: ScriptedHelm, folder: Path) -> None:
        self._said = io.StringIO()
        self._seconds = 0.0
        self.cluster = Cluster(None, None, {"KUBECONFIG": cluster.kubeconfig(folder)})
        console = Console(file=self._said, width=200, highlight=False)
        clock = Clock(lambda: self._seconds, lambda: NOW, self._pause)
        self.deployer = Deployer(Helm(self.cluster.namespace, None, helm.environ), self.cluster, console, clock)

    def deploy(self, *, within: float | None = None, dry_run: bool = False, create: bool = True) -> None:
        wanted = Wanted("pd", "./chart", PLAN, [Path("mine.yaml")], ["proxy.replicas=2"], create_namespace=create)
        self.deployer.preview(wanted) if dry_run else self.deployer.deploy(wanted, within)

    @property
    def said(self) -> str:
        return self._said.getvalue()

    def _pause(self) -> None:
        self._seconds += 1.0


@pytest.fixture
def here(cluster: ScriptedCluster, helm: ScriptedHelm, tmp_path: Path) -> Iterator[Here]:
    found = Here(cluster, helm, tmp_path)
    yield found
    found.cluster.close()


def serves(cluster: ScriptedCluster) -> None:
    """From the next look on."""
    cluster.answers["deployments"] = [[workload("decode")]]
    cluster.answers["pods"] = [[pod("decode")]]


def stuck(cluster: ScriptedCluster, case: str) -> None:
    cluster.answers["deployments"] = [[workload("decode", ready=0)]]
    cluster.answers["pods"] = [[pod("decode", case)]]
    cluster.answers["events"] = [seen(case)["events"]]


def test_a_release_is_installed_and_waited_for(here, cluster, helm):
    cluster.answers["deployments"] = [
        [workload("decode", ready=0)],
        [workload("decode", ready=0)],
        [workload("decode")],
    ]
    cluster.answers["pods"] = [[pod("decode", "gpu")], [pod("decode", "slow")], [pod("decode")]]
    cluster.answers["log"] = ["non-default args: {}\n"]
    here.deploy()
    assert helm.releases == {"pd": [(helm.folder / "planned").read_text()]}
    assert yaml.safe_load((helm.folder / "plan.yaml").read_text()) == PLAN
    told = [line.split(maxsplit=1)[1] for line in here.said.splitlines() if line.startswith("  pd-decode-1-abcde ")]
    steps = [text.partition(" (")[0] for text in told if not text.startswith("!")]
    assert steps == ["waits for a node", "reading the model's configuration", "ready"]
    assert here.said.endswith("pd serves; how to ask it: helm get notes pd --namespace llm\n")


def test_helm_gets_the_plan_then_what_the_user_says(here, cluster, helm):
    serves(cluster)
    here.deploy()
    call = helm.calls[-1].split()
    assert call[:4] == ["upgrade", "--install", "pd", "./chart"]
    assert call[4].endswith("/plan.yaml")
    assert not Path(call[4].removeprefix("--values=")).exists()
    options = ["--values=mine.yaml", "--set=proxy.replicas=2", "--create-namespace", "--timeout=120s"]
    assert call[5:] == [*options, "--namespace", "llm"]


def test_an_upgrade_says_what_it_changes(here, cluster, helm):
    helm.has(pd=[OLD])
    serves(cluster)
    here.deploy()
    assert "~ Service pd-proxy\n" in here.said
    assert "    -  port: 7000\n    +  port: 8000\n" in here.said
    assert len(helm.releases["pd"]) == 2


def test_a_preview_changes_nothing(here, helm):
    here.deploy(dry_run=True)
    assert here.said == "+ Service pd-proxy\n"
    helm.has(pd=[OLD])
    here.deploy(dry_run=True)
    helm.plan(OLD)
    here.deploy(dry_run=True)
    assert here.said.endswith("    +  port: 8000\nnothing changes\n")
    assert helm.releases == {"pd": [OLD]}


def test_a_pod_that_cannot_start_ends_the_waiting_at_once(here, cluster, helm):
    stuck(cluster, "crash")
    cluster.answers["previous"] = ["loading\nValueError: No available memory for the cache blocks.\n"]
    with pytest.raises(ReleaseError) as caught:
        here.deploy()
    assert caught.value.exit_code == 7
    assert caught.value.log_tail == ("loading", "ValueError: No available memory for the cache blocks.")
    [message] = caught.value.messages
    assert message.startswith("pd-decode-1-abcde: the container engine ended with exit code 1")
    assert "Likely: the KV cache is too small" in message
    assert "launcher undeploy pd --namespace llm\n" in here.said
    assert "rollback" not in here.said
    assert helm.releases


def test_after_an_upgrade_that_fails_the_way_back_is_told(here, cluster, helm):
    helm.has(pd=[OLD])
    stuck(cluster, "never")
    with pytest.raises(ReleaseError):
        here.deploy()
    assert "  launcher rollback pd --namespace llm\n" in here.said


def test_what_others_may_mend_gets_a_while(here, cluster):
    stuck(cluster, "secret")
    ok = workload("decode")
    cluster.answers["deployments"] = [*[[workload("decode", ready=0)]] * 8, [ok]]
    here.deploy()
    assert here.said.count('secret "keys" not found') == 1


def test_a_pod_without_a_node_is_told_at_once_and_given_up_later(here, cluster):
    stuck(cluster, "gpu")
    with pytest.raises(ReleaseError, match="no node takes it"):
        here.deploy()
    assert here._seconds == 60.0


def test_a_start_that_takes_longer_than_its_budget_is_late(here, cluster):
    stuck(cluster, "probe")
    cluster.answers["previous"] = ["loading\n"]
    with pytest.raises(NotReadyError, match="was not ready within 8 s") as caught:
        here.deploy()
    assert (caught.value.exit_code, caught.value.log_tail) == (6, ("loading",))


def test_nobody_waits_for_ever(here, cluster):
    stuck(cluster, "slow")
    with pytest.raises(NotReadyError, match="not ready after 120 s; pd-decode: 0 of 1 ready"):
        here.deploy()


def test_the_user_says_how_long(here, cluster, helm):
    stuck(cluster, "slow")
    with pytest.raises(NotReadyError, match="not ready after 7 s"):
        here.deploy(within=7)
    assert "--timeout=7s" in helm.calls[-1]


def test_pods_that_are_refused_are_explained(here, cluster):
    refused = seen("quota")["workload"]
    cluster.answers["deployments"] = [[refused]]
    with pytest.raises(ReleaseError, match="exceeded quota: few"):
        here.deploy()


def test_what_the_old_version_does_wrong_does_not_matter(here, cluster):
    cluster.answers["deployments"] = [[workload("decode", ready=0)], [workload("decode")]]
    cluster.answers["replicasets"] = [[replica_set("decode", 1), replica_set("decode", 2)]]
    cluster.answers["pods"] = [[pod("decode", "oom", number=1), pod("decode", "slow", number=2)]]
    here.deploy()


def test_an_api_server_that_is_away_for_a_moment_is_waited_for(here, cluster):
    serves(cluster)
    cluster.status["deployments"] = 503
    asked = here.cluster._list

    def recovers(*arguments):
        try:
            return asked(*arguments)
        finally:
            cluster.status.clear()

    here.cluster._list = recovers
    here.deploy()
    assert "note: the API server answers 503" in here.said


def test_one_that_stays_away_ends_the_waiting_when_the_time_is_over(here, cluster):
    cluster.status["deployments"] = 503
    with pytest.raises(UnseenError, match="the API server answers 503: no deployments for you"):
        here.deploy()
    assert here._seconds > 120


def test_who_may_not_list_pods_is_told_what_to_ask_for(here, cluster):
    serves(cluster)
    cluster.status["pods"] = 403
    with pytest.raises(ClusterError, match="kubectl auth can-i list pods --namespace llm"):
        here.deploy()


def test_who_may_not_see_events_or_logs_is_told_less(here, cluster):
    cluster.answers["deployments"] = [[workload("decode", ready=0)], [workload("decode")]]
    cluster.answers["pods"] = [[pod("decode", "slow")]]
    cluster.status |= {"events": 403, "log": 403}
    here.deploy()
    assert here.said.count("note: you may not see events in the namespace llm") == 1
    assert here.said.count("note: you may not read logs in the namespace llm") == 1


def test_helms_refusal_is_one_error_with_what_to_do(here, cluster, helm):
    said = 'W1130 client.go:1] chatter\nError: create: failed to create: namespaces "llm" not found\n'
    (helm.folder / "refusal").write_text(said)
    with pytest.raises(ReleaseError) as caught:
        here.deploy()
    assert caught.value.messages == (
        'helm upgrade: create: failed to create: namespaces "llm" not found; make it, or give --create-namespace',
    )
    assert cluster.asked == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_namespace_that_is_not_there_is_said_before_anything_is_made(here, cluster, helm, dry_run):
    cluster.status["llm"] = 404
    with pytest.raises(ClusterError, match="there is no namespace llm: give --create-namespace"):
        here.deploy(dry_run=dry_run, create=False)
    assert helm.releases == {}


def test_who_may_not_ask_for_namespaces_deploys_all_the_same(here, cluster, helm):
    serves(cluster)
    cluster.status["llm"] = 403
    here.deploy(create=False)
    assert "pd" in helm.releases


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        (
            "values don't meet the specifications of the schema(s) in the following chart(s)",
            f"`helm show values {shlex.quote(str(chart.shipped()))}` explains all there are",
        ),
        ('no matches for kind "ServiceMonitor" in version "v1"', "install that first, or turn its values off"),
        ("release has no 17 version", "`helm history RELEASE` lists the revisions that are kept"),
    ],
)
def test_helms_refusals_say_what_to_do(here, helm, said, fix):
    (helm.folder / "refusal").write_text(f"Error: {said}\n")
    with pytest.raises(ReleaseError, match=re.escape(fix)):
        here.deploy()


def test_a_file_of_values_that_is_not_there_is_a_wrong_command_line(launch, helm):
    process = launch("deploy", "demo", "--values", "nowhere.yaml")
    _, complaint = process.communicate()
    assert (process.returncode, "nowhere.yaml" in complaint) == (2, True)
    assert helm.releases == {}


def test_a_cluster_that_helm_does_not_reach_is_no_release(here, helm):
    (helm.folder / "refusal").write_text("Error: Kubernetes cluster unreachable: connection refused")
    with pytest.raises(ClusterError, match="check KUBECONFIG"):
        here.deploy()


def test_a_release_goes_back_and_is_waited_for(here, cluster, helm):
    helm.has(pd=[OLD, "kind: Service\nmetadata: {name: new}\n"])
    serves(cluster)
    here.deployer.rollback("pd", 1, None)
    assert helm.releases["pd"][-1] == OLD
    assert here.said.endswith("pd serves; how to ask it: helm get notes pd --namespace llm\n")


def test_a_release_is_taken_away_and_its_pods_are_waited_for(here, cluster, helm):
    helm.has(pd=[OLD])
    ends = pod("decode", ends="2026-11-30T10:00:30Z")
    cluster.answers["pods"] = [[pod("decode")], [ends], []]
    here.deployer.undeploy("pd")
    assert helm.releases == {}
    assert "drains, ends within" in here.said
    assert here.said.endswith("pd is gone\n")


def test_a_pod_that_outlives_its_grace_is_told(here, cluster, helm):
    helm.has(pd=[OLD])
    cluster.answers["pods"] = [[pod("decode", ends="2026-11-30T10:00:30Z")]]
    with pytest.raises(NotReadyError, match="pd-decode-1-abcde: still there after 62 s; is its node there"):
        here.deployer.undeploy("pd")


@pytest.mark.parametrize("story", ["rollback", "undeploy"])
def test_an_unknown_release_is_told_with_those_there_are(here, helm, story):
    helm.has(pd=[OLD], nginx=[OLD])
    arguments = (3, None) if story == "rollback" else ()
    with pytest.raises(ClusterError, match=r"no release pf in the namespace llm; of Duet there are: pd$"):
        getattr(here.deployer, story)("pf", *arguments)


@pytest.mark.parametrize("story", ["deploy", "preview", "rollback", "undeploy"])
def test_a_release_of_another_chart_is_left_alone(here, helm, story):
    helm.has(nginx=[OLD])
    wanted = Wanted("nginx", "./chart", PLAN, [], [], create_namespace=False)
    arguments = {"deploy": (wanted, None), "preview": (wanted,), "rollback": ("nginx", 1, None), "undeploy": ("nginx",)}
    with pytest.raises(ClusterError, match=r"the release nginx is of the chart nginx-1\.0\.0, not of Duet"):
        getattr(here.deployer, story)(*arguments[story])
    assert helm.releases == {"nginx": [OLD]}


def test_pods_of_tests_are_not_the_releases(here, cluster):
    test = pod("test")
    test["metadata"]["annotations"] = {"helm.sh/hook": "test"}
    cluster.answers["pods"] = [[test]]
    assert here.cluster.pods("pd") == []


@pytest.mark.parametrize(("version", "told"), [("v3.12.9", "is v3.12.9; 3.13 is needed"), ("", "of no known version")])
def test_an_old_helm_is_refused(helm, version, told):
    (helm.folder / "version").write_text(version)
    with pytest.raises(ClusterError, match=told):
        Helm("llm", None, helm.environ)


@pytest.mark.parametrize("version", ["v3.13.0", "v4.3.1", "v10.0.0-rc.1"])
def test_a_newer_helm_is_taken(helm, version):
    (helm.folder / "version").write_text(version)
    Helm("llm", "staging", helm.environ)
    assert helm.calls[-1].endswith("--namespace llm --kube-context staging")


def test_a_missing_helm_is_told_with_where_to_get_it(tmp_path):
    with pytest.raises(ClusterError, match=r"no helm on PATH; https://helm\.sh"):
        Helm("llm", None, {"PATH": str(tmp_path)})


@pytest.mark.parametrize("context", [None, "nowhere"])
def test_no_cluster_is_told(tmp_path, context):
    with pytest.raises(ClusterError, match="no cluster is known"):
        Cluster(None, context, {"KUBECONFIG": str(tmp_path / "none")})


def test_the_chart_is_in_the_package_as_profiles_are():
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert included["force-include"]["helm"] == "launcher/chart"
    assert (chart.shipped() / "Chart.yaml").is_file()


@pytest.fixture
def launch(cluster, helm, tmp_path):
    """The launcher as a program; returns it running."""

    def launch(*arguments):
        environ = os.environ | helm.environ
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "launcher", *arguments],
            env=environ | {"PYTHONPATH": str(ROOT), "KUBECONFIG": cluster.kubeconfig(tmp_path), "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return launch


def test_the_command_deploys_a_profile_by_the_chart_that_comes_with_it(launch, cluster, helm):
    serves(cluster)
    process = launch("deploy", "demo", "--set", "proxy.port=9000", "--namespace", "mine")
    said, complaint = process.communicate()
    assert (process.returncode, complaint) == (0, "")
    assert said.endswith("demo serves; how to ask it: helm get notes demo --namespace mine\n")
    assert f"upgrade --install demo {ROOT / 'helm'} " in helm.calls[-1]
    assert helm.calls[-1].endswith("--namespace mine")
    plan = yaml.safe_load((helm.folder / "plan.yaml").read_text())["plan"]
    assert (plan["profile"], plan["proxy"]["port"]) == ("demo", 9000)
    assert any(
        "/namespaces/mine/deployments?labelSelector=app.kubernetes.io/instance%3Ddemo" in each for each in cluster.asked
    )


def test_the_command_ends_with_the_error_and_the_last_lines(launch, cluster):
    stuck(cluster, "crash")
    cluster.answers["previous"] = ["boom\n"]
    process = launch("deploy", "demo")
    _, complaint = process.communicate()
    assert process.returncode == 7
    assert complaint.startswith("  | boom\nerror: pd-decode-1-abcde: the container engine ended")


def test_a_faulty_profile_never_reaches_the_cluster(launch, cluster, helm):
    process = launch("deploy", "demo", "--set", "nonsense=1")
    process.communicate()
    assert process.returncode == 3
    assert cluster.asked == []


@pytest.mark.parametrize(
    "arguments",
    [("deploy", "demo", "--release=-x"), ("undeploy", "A"), ("status", "--namespace", "llm")],
)
def test_a_wrong_command_line_is_usage(launch, arguments):
    process = launch(*arguments)
    process.communicate()
    assert process.returncode == 2


def test_ctrl_c_leaves_the_release_to_go_on(launch, cluster, helm):
    stuck(cluster, "slow")
    process = launch("deploy", "demo")
    for line in process.stdout:
        if "importing vLLM" in line:
            break
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 130
    assert complaint.startswith("interrupted; what was begun of demo goes on in the cluster")
    assert "demo" in helm.releases


def test_ctrl_c_lets_helm_end_itself(launch, helm):
    os.mkfifo(helm.folder / "begun")
    process = launch("deploy", "demo")
    assert (helm.folder / "begun").read_text() == "begun"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert (helm.folder / "cleaned").exists()


def test_status_tells_of_each_pod_and_what_is_wrong(launch, cluster, helm):
    helm.has(pd=[OLD], nginx=[OLD])
    stuck(cluster, "oom")
    process = launch("status", "--cluster")
    said, _ = process.communicate()
    assert process.returncode == 1
    assert said.startswith("pd (revision 1, deployed) in the namespace llm: not healthy\n")
    assert "pd-decode-1-abcde  decode  no" in said
    assert "  ! pd-decode: 0 of 1 ready\n  ! pd-decode-1-abcde: the container engine needed more memory" in said
    assert "nginx" not in said


def test_status_is_readable_for_programs_and_says_what_the_proxy_says(launch, cluster, helm):
    helm.has(pd=[OLD])
    proxy = pod("proxy")
    container = proxy["spec"]["containers"][0]
    container["readinessProbe"] = {"httpGet": {"path": "/ready", "port": "http"}}
    cluster.answers["deployments"] = [[workload("proxy")]]
    cluster.answers["pods"] = [[proxy]]
    cluster.answers["ready"] = [{"ready": True, "modes": {"pd": True, "aggregated": False}, "instances": []}]
    process = launch("status", "--cluster", "--output", "json")
    said, _ = process.communicate()
    assert process.returncode == 0
    [found] = json.loads(said)["releases"]
    assert (found["name"], found["healthy"], found["proxy"]) == ("pd", True, "ready; modes: pd")
    assert found["pods"][0]["role"] == "proxy"
    assert any(each.endswith("/pods/pd-proxy-1-abcde:8100/proxy/ready") for each in cluster.asked)


def test_status_without_a_release_is_not_healthy(launch, helm):
    helm.has(nginx=[OLD])
    process = launch("status", "--cluster")
    said, _ = process.communicate()
    assert (process.returncode, said) == (1, "no release of Duet is in the namespace llm\n")
