"""The only file of the proxy that knows the client of Kubernetes. What that raises becomes :class:`DiscoveryError`."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import client, config
from kubernetes.aio.config.config_exception import ConfigException

from proxy.config import Discovery
from proxy.discovery.pods import Pod

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_PATIENCE = 10.0
"""Seconds, for an answer to begin."""
_GONE = 410
_UNKNOWN, _DENIED = 401, 403


class DiscoveryError(Exception):
    """The API server does not tell which pods there are; the message says why and what to do."""


class Expired(DiscoveryError):
    """It does not know any more what has changed since the version asked for: read all anew."""


class Pods:
    """Those of one selector."""

    def __init__(self, discovery: Discovery, environ: Mapping[str, str]) -> None:
        """``environ`` tells whether this is a pod, or else where the kubeconfig is."""
        self._discovery = discovery
        self._environ = environ
        self._api: client.CoreV1Api | None = None
        self._stale = False
        """Whether credentials may have changed since they were read."""
        self._namespace = discovery.namespace or ""

    async def all(self) -> tuple[list[Pod], str]:
        """As they are now, and the version from which on to watch."""
        with self._translated():
            async with asyncio.timeout(_PATIENCE):
                api = await self._open()
                answer = await api.list_namespaced_pod_without_preload_content(
                    self._namespace, label_selector=self._discovery.selector
                )
                document = await self._document(answer)
            return document.get("items") or [], document["metadata"]["resourceVersion"]

    async def changes(self, version: str) -> AsyncGenerator[tuple[str, Pod], None]:
        """What happens after it: ``ADDED``, ``MODIFIED`` or ``DELETED``, and the pod; until it is time to read all."""
        within = max(1, round(self._discovery.reconcile))
        with self._translated():
            api = await self._open()
            # The server ends it; should the connection be dead, the client does.
            async with asyncio.timeout(within + _PATIENCE):
                answer = await api.list_namespaced_pod_without_preload_content(
                    self._namespace,
                    label_selector=self._discovery.selector,
                    resource_version=version,
                    watch=True,
                    timeout_seconds=within,
                    _request_timeout=within + _PATIENCE,
                )
                async with answer:
                    if answer.status != 200:
                        await self._document(answer)
                    async with aclosing(_lines(answer.content)) as lines:
                        async for line in lines:
                            event = json.loads(line)
                            if event["type"] == "ERROR":
                                raise self._refusal(event["object"].get("code", 0), event["object"].get("message", ""))
                            if event["type"] != "BOOKMARK":
                                yield event["type"], event["object"]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._api is not None:
            await self._api.api_client.close()

    async def _open(self) -> client.CoreV1Api:
        if self._api is not None and self._stale:
            await self._api.api_client.close()
            self._api = None
        if self._api is None:
            settings = client.Configuration()
            settings.retries = None
            if "KUBERNETES_SERVICE_HOST" in self._environ:
                config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]
                self._namespace = self._namespace or await asyncio.to_thread(_OWN_NAMESPACE.read_text)
            else:
                loader = await config.load_kube_config(  # type: ignore[no-untyped-call]
                    self._environ.get("KUBECONFIG"), client_configuration=settings, persist_config=False
                )
                context = loader.current_context["context"]
                self._namespace = self._namespace or context.get("namespace") or "default"
            self._api, self._stale = client.CoreV1Api(client.ApiClient(settings)), False
        return self._api

    async def _document(self, answer: aiohttp.ClientResponse) -> dict[str, Any]:
        text = await answer.text()
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise DiscoveryError(f"the API server answers {answer.status} and no JSON: {text[:80]}")
        if answer.status != 200:
            raise self._refusal(answer.status, str(found.get("message", "")))
        return found

    def _refusal(self, status: int, message: str) -> DiscoveryError:
        if status == _GONE:
            return Expired(message)
        if status == _UNKNOWN:
            self._stale = True
            return DiscoveryError(
                f"the API server does not know the proxy ({status}: {message}): its token is read anew; if that does "
                "not help, look at the service account, or log in again where KUBECONFIG is used"
            )
        if status == _DENIED:
            return DiscoveryError(
                f"the proxy may not see pods in the namespace {self._namespace} ({status}: {message}): give its "
                "service account a Role with the verbs get, list and watch on pods there, as the Helm chart does"
            )
        return DiscoveryError(f"the API server answers {status}: {message}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (ConfigException, FileNotFoundError) as exc:
            raise DiscoveryError(
                f"no cluster is known: {exc}; run the proxy in a pod with a service account, or set KUBECONFIG"
            ) from exc
        except TimeoutError as exc:
            raise DiscoveryError("the API server does not answer in time") from exc
        except (aiohttp.ClientError, client.ApiException, OSError) as exc:
            self._stale = True  # it may have another certificate now
            raise DiscoveryError(f"the API server cannot be reached: {type(exc).__name__}: {exc}") from exc
        except (ValueError, KeyError, TypeError) as exc:
            raise DiscoveryError(f"the API server's answer makes no sense: {exc!r}") from exc


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    """Of any length: the reader's own way ends at 128 KiB, and a pod may be longer."""
    begun = bytearray()
    async for chunk in content.iter_any():
        begun += chunk
        while (end := begun.find(b"\n")) >= 0:
            yield bytes(begun[:end])
            del begun[: end + 1]
