"""What the demo does once everything is ready: one question, the answer, the proof."""

from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from launcher import show
from launcher.demo.evidence import COUNTER, SOURCE, tokens_received, tokens_received_since
from launcher.demo.question import Answer, ask
from launcher.errors import LauncherError, ProofError
from launcher.local import operator_key, pairs
from launcher.plan import Plan
from proxy.topology import Role

QUESTION = "What is the capital of France?"


class DemoSession:
    """Called by `up` once everything is ready."""

    def __init__(self, console: Console, question: str, *, once: bool, launcher: str) -> None:
        self._console = console
        self._launcher = launcher
        self._question = question
        self._once = once

    async def __call__(self, plan: Plan, client: httpx.AsyncClient) -> bool:
        """Ask, show, prove; whether to go on serving. Raises :class:`ProofError` with ``once``, else says it."""
        show.address(self._console, plan)
        try:
            await self._prove(plan, client)
        except (LauncherError, httpx.HTTPError) as exc:
            error = exc if isinstance(exc, LauncherError) else ProofError(f"the question got no answer: {exc!r}")
            if self._once:
                raise error from exc
            self._console.print(f"No proof: {error}", markup=False, soft_wrap=True)
        if not self._once:
            self._console.print(
                f"Serving until Ctrl+C. In another terminal: {self._launcher} status, {self._launcher} logs -f",
                markup=False,
                soft_wrap=True,
            )
        return not self._once

    async def _prove(self, plan: Plan, client: httpx.AsyncClient) -> None:
        decode_urls = [engine.url for engine in plan.engines if engine.role is Role.DECODE]
        before = await tokens_received(client, decode_urls)
        self._console.print(f"Question: {self._question}\nAnswer:   ", end="", markup=False)
        answer = await ask(client, plan.proxy.url, plan.served_name, self._question, self._show_piece)
        self._console.print("\n")
        received = await tokens_received_since(client, decode_urls, before, answer.prompt_tokens)
        self._console.print(_proof(answer, received))
        if received != answer.prompt_tokens:
            raise ProofError(
                f"decode received {received} of the prompt's {answer.prompt_tokens} tokens from prefill (the proxy "
                f"says path {answer.path}): see `launcher logs decode-0`"
            )
        self._console.print(
            f"\nProved: decode computed none of the {received} prompt tokens itself, by its own counter\n"
            f'{COUNTER}_total{{source="{SOURCE}"}}.\n',
            style="green",
            markup=False,
        )

        key = operator_key.headers(Path(plan.files[0].path).parent)
        url = f"{plan.proxy.operators_url}/pairs/prove"
        matrix = pairs.read(await client.post(url, headers=key, timeout=pairs.PROVING))
        self._console.print("Every pair of instances, proven by a canary (`launcher prove`):", markup=False)
        self._console.print(show.proof_table(matrix))
        if not matrix.proven:
            raise ProofError("a canary did not come through: see `launcher logs proxy`")

    def _show_piece(self, text: str) -> None:
        self._console.print(text, end="", markup=False, soft_wrap=True)


def _proof(answer: Answer, received: int) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("Path taken", answer.path)
    table.add_row("Prompt tokens", str(answer.prompt_tokens))
    table.add_row("KV tokens decode received from prefill", str(received))
    table.add_row("TTFT", f"{answer.ttft * 1000:.0f} ms")
    speed = answer.tokens_per_second
    table.add_row("Speed while decoding", "it came in one piece" if speed is None else f"{speed:.1f} tokens/s")
    return table
