"""Idle connections to a real engine are given up before it closes them."""

import subprocess
import sys

from proxy.wire.client import KEPT


def test_they_are_kept_for_less_time_than_the_engine_keeps_them():
    ask = "from vllm import envs; print(envs.VLLM_HTTP_TIMEOUT_KEEP_ALIVE)"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, env={})
    assert int(told.stdout.splitlines()[-1]) >= KEPT + 1
