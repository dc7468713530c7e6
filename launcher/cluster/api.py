"""The only file of the launcher that knows the client of Kubernetes; it only reads.

Its import takes a second, so only those who need it import this file.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import urllib3.exceptions
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from launcher.cluster.sight import (
    PROXY,
    RELEASE,
    Log,
    Object,
    Sight,
    containers,
    ends,
    has_ended,
    is_ready,
    name,
    role,
)
from launcher.errors import ClusterError, UnseenError

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_PATIENCE = 10.0
"""Seconds, for an answer."""
_LINES = 2000
"""Of a log: an engine writes some hundreds while it loads."""
_MISSING, _DENIED = 404, (401, 403)
_GROUPS = "leaderworkerset.x-k8s.io/v1"


class Cluster:
    """One namespace. Raises :class:`launcher.errors.ClusterError`."""

    def __init__(self, namespace: str | None, context: str | None, environ: Mapping[str, str]) -> None:
        """Without ``namespace`` it is that of the context. ``environ`` tells where the kubeconfig is."""
        settings = client.Configuration()
        settings.retries = False
        files, default = environ.get("KUBECONFIG"), Path("~/.kube/config").expanduser()
        try:
            if files is None and not default.exists() and "KUBERNETES_SERVICE_HOST" in environ:
                config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
                self.namespace = namespace or _OWN_NAMESPACE.read_text()
            else:
                config.load_kube_config(  # type: ignore[no-untyped-call]
                    files, context, client_configuration=settings, persist_config=False
                )
                self.namespace = namespace or _namespace_of(context, files)
        except (ConfigException, OSError) as exc:
            raise ClusterError(
                f"no cluster is known: {str(exc).rstrip('.')}; set KUBECONFIG, or give another --context"
            ) from exc
        self.where = f"--namespace {self.namespace}" + (f" --context {shlex.quote(context)}" if context else "")
        self._api = client.ApiClient(settings)
        self._notes: list[str] = []

    def look(self, release: str) -> Sight:
        """What there is of a release now."""
        self._notes = []
        selector = [("labelSelector", f"{RELEASE}={release}")]
        # In this order: what owns comes before what it owns, so that nothing is of an owner that is not known yet.
        deployments = [{"kind": "Deployment", **each} for each in self._list("apis/apps/v1", "deployments", selector)]
        groups = [{"kind": "LeaderWorkerSet", **each} for each in self._groups(selector)]
        replica_sets = self._list("apis/apps/v1", "replicasets", selector)
        pods = self.pods(release)
        not_ready = [pod for pod in pods if not (is_ready(pod) or ends(pod) or has_ended(pod))]
        events = {name(pod): self._events(pod) for pod in not_ready}
        logs = {name(pod): self._logs(pod) for pod in not_ready}
        proxies = {name(pod): said for pod in pods if role(pod) == PROXY and (said := self._ready(pod))}
        notes = tuple(dict.fromkeys(self._notes))
        return Sight((*deployments, *groups), replica_sets, pods, events, logs, proxies, notes)

    def pods(self, release: str) -> Sequence[Object]:
        """Those of a release, ended ones too; not those of its tests."""
        found = self._list("api/v1", "pods", [("labelSelector", f"{RELEASE}={release}")])
        return [pod for pod in found if "helm.sh/hook" not in (pod["metadata"].get("annotations") or {})]

    def lacks_namespace(self) -> bool:
        """Whether it is known that the namespace is not there; not everybody may ask."""
        status, _ = self._get(f"api/v1/namespaces/{self.namespace}", [])
        return status == _MISSING

    def close(self) -> None:
        """Its connections."""
        self._api.close()  # type: ignore[no-untyped-call]

    def _groups(self, selector: list[tuple[str, str]]) -> Sequence[Object]:
        status, document = self._get(f"apis/{_GROUPS}/namespaces/{self.namespace}/leaderworkersets", selector)
        items: list[Object] = document.get("items") or [] if status == 200 else []
        return items  # most clusters have no such kind

    def _list(self, group: str, kind: str, query: list[tuple[str, str]]) -> Sequence[Object]:
        status, document = self._get(f"{group}/namespaces/{self.namespace}/{kind}", query)
        if status in _DENIED:
            raise ClusterError(
                f"you may not list {kind} in the namespace {self.namespace}: {document.get('message', status)}; "
                f"`kubectl auth can-i list {kind} --namespace {self.namespace}` has to say yes"
            )
        if status != 200:
            raise UnseenError(f"the API server answers {status}: {document.get('message', '')}")
        items: list[Object] = document.get("items") or []
        return items

    def _events(self, pod: Object) -> Sequence[Object]:
        selectors = [f"involvedObject.uid={pod['metadata']['uid']}"]
        volumes = pod["spec"].get("volumes") or ()
        claims = [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]
        selectors += [f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={claim}" for claim in claims]
        found: list[Object] = []
        for selector in selectors:
            found += self._optional("events", [("fieldSelector", selector)]).get("items") or []
        return sorted(found, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""))

    def _logs(self, pod: Object) -> Log:
        states = [each for each in containers(pod) if each.get("containerID")]
        if not states:
            return Log()
        last = states[-1]  # earlier ones are done
        query = [("container", last["name"]), ("tailLines", str(_LINES))]
        now = self._log(pod, query)
        before = self._log(pod, [*query, ("previous", "true")]) if last.get("restartCount") else ()
        return Log(now, before)

    def _log(self, pod: Object, query: list[tuple[str, str]]) -> Sequence[str]:
        status, text = self._text(f"api/v1/namespaces/{self.namespace}/pods/{name(pod)}/log", query)
        if status in _DENIED:
            self._notes.append(f"you may not read logs in the namespace {self.namespace}")
        return text.splitlines() if status == 200 else ()

    def _ready(self, pod: Object) -> Object:
        """What this proxy says; nothing when it does not answer, or may not be asked."""
        port, scheme = _probed(pod)
        if port is None or not any("running" in each.get("state", {}) for each in containers(pod)):
            return {}
        said = self._optional(f"pods/{scheme}{name(pod)}:{port}/proxy/ready", [])
        return {} if said.get("kind") == "Status" else said

    def _optional(self, path: str, query: list[tuple[str, str]]) -> Object:
        status, document = self._get(f"api/v1/namespaces/{self.namespace}/{path}", query)
        if status in _DENIED:
            what = path.partition("/")[0] if "/proxy/" not in path else "pods/proxy (what the proxy says)"
            self._notes.append(f"you may not see {what} in the namespace {self.namespace}")
            return {}
        return document

    def _get(self, path: str, query: list[tuple[str, str]]) -> tuple[int, Object]:
        status, text = self._text(path, query)
        try:
            found = json.loads(text)
        except ValueError:
            found = {"message": text[:200].strip()}
        return status, found if isinstance(found, dict) else {}

    def _text(self, path: str, query: list[tuple[str, str]]) -> tuple[int, str]:
        with _translated():
            # The generated methods check answers against the newest version's shapes; older servers answer others.
            request = self._api.param_serialize("GET", f"/{path}", query_params=query, auth_settings=["BearerToken"])
            answer = self._api.call_api(*request, _request_timeout=_PATIENCE)
            content: bytes = answer.read()  # type: ignore[no-untyped-call]
            return answer.status, content.decode(errors="replace")


def _namespace_of(context: str | None, files: str | None) -> str:
    contexts, current = config.list_kube_config_contexts(files)  # type: ignore[no-untyped-call]
    chosen = current if context is None else next(each for each in contexts if each["name"] == context)
    return str(chosen["context"].get("namespace") or "default")


def _probed(pod: Object) -> tuple[int | None, str]:
    """Where ``/ready`` is, and what the API server writes before it."""
    for container in pod["spec"]["containers"]:
        probe = (container.get("readinessProbe") or {}).get("httpGet") or {}
        for port in container.get("ports") or ():
            if probe.get("port") in {port.get("name"), port["containerPort"]}:
                return port["containerPort"], "https:" if probe.get("scheme") == "HTTPS" else ""
    return None, ""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except urllib3.exceptions.TimeoutError as exc:
        raise UnseenError(f"the API server does not answer within {_PATIENCE:g} s") from exc
    except (urllib3.exceptions.HTTPError, client.ApiException, OSError) as exc:
        raise UnseenError(f"the API server cannot be reached: {type(exc).__name__}: {exc}") from exc
