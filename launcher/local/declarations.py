"""Keeps what the proxy is told of the engines' weights true: somebody may replace them while the deployment runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from launcher.errors import RunDirectoryError
from launcher.fingerprint import checkpoints
from launcher.local import proxy_file
from launcher.local.run_directory import RunDirectory
from launcher.plan import EngineInstance
from launcher.weights import digests
from proxy.config import ProxyConfig

GONE = "unreadable when it was started"
"""The digest of weights that were there before."""


class Declarations:
    """Of the engines of one deployment. ``environ`` is the launcher's; ``warn`` tells people."""

    def __init__(
        self,
        engines: Sequence[EngineInstance],
        directory: RunDirectory,
        environ: Mapping[str, str],
        warn: Callable[[str], None],
    ) -> None:
        self._engines = {engine.name: engine for engine in engines}
        self._file = directory.proxy_config
        self._environ = environ
        self._warn = warn

    def follow(self, engines: Sequence[EngineInstance]) -> None:
        """These are the engines from now on."""
        self._engines = {engine.name: engine for engine in engines}

    async def complete(self) -> None:
        """All engines are ready: what they load from a hub is there now, if it was not when the plan was made."""
        for name in self._engines:
            await self._update(name, only_unknown=True)

    async def renew(self, name: str) -> None:
        """An engine is about to load its weights again: tell the proxy which these are now."""
        await self._update(name, only_unknown=False)

    async def _update(self, name: str, *, only_unknown: bool) -> None:
        try:
            before = proxy_file.fingerprint(self._file, name)
            wanted = checkpoints(self._engines[name])
            if only_unknown and before.keys() >= wanted.keys():
                return
            environ = {**self._environ, **self._engines[name].env}
            found = await asyncio.to_thread(digests, wanted.values(), environ)
            now: dict[str, str] = {
                fact: found.get(checkpoint, GONE)
                for fact, checkpoint in wanted.items()
                if checkpoint in found or fact in before
            }
            if any(before.get(fact) != digest for fact, digest in now.items()):
                proxy_file.change(self._file, lambda config: declared(config, name, now))
        except RunDirectoryError as exc:
            self._warn(f"{exc}; the proxy does not learn whether {name} still loads the same weights")
            return
        for fact, digest in now.items():
            if before.get(fact, digest) != digest:
                self._warn(
                    f"{fact} of {name} is another than before ({before[fact]}, now {digest}): it exchanges no KV with "
                    "engines that have loaded the former until they are started again, too"
                )


def declared(config: ProxyConfig, name: str, facts: Mapping[str, str]) -> ProxyConfig:
    """The configuration with these facts of an instance."""
    instances = tuple(
        replace(each, fingerprint={**each.fingerprint, **facts}) if each.name == name else each
        for each in config.topology.instances
    )
    return replace(config, topology=replace(config.topology, instances=instances))
