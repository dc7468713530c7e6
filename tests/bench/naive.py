"""The baseline that most people write first: a two-step proxy with FastAPI and httpx, and nothing else.

python -m tests.bench.naive PORT PREFILL_URL DECODE_URL
"""

import sys
from collections.abc import AsyncIterator

import httpx
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse


def main(port: int, prefill: str, decode: str) -> None:
    """Serve for ever."""
    app = FastAPI()
    client = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None))

    @app.post("/v1/chat/completions", response_model=None)
    async def chat(request: Request) -> Response:
        body = await request.json()
        first = {**body, "stream": False, "max_tokens": 1, "kv_transfer_params": {"do_remote_decode": True}}
        answer = await client.post(f"{prefill}/v1/chat/completions", json=first)
        body["kv_transfer_params"] = answer.json()["kv_transfer_params"]
        if not body.get("stream"):
            return JSONResponse((await client.post(f"{decode}/v1/chat/completions", json=body)).json())

        async def events() -> AsyncIterator[bytes]:
            async with client.stream("POST", f"{decode}/v1/chat/completions", json=body) as stream:
                async for chunk in stream.aiter_bytes():
                    yield chunk

        return StreamingResponse(events(), media_type="text/event-stream")

    uvicorn.run(app, port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
