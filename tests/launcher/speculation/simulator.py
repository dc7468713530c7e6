"""A server that exists as a model only: goodput by load and K, with noise; calibrated with published figures."""

import math

import numpy as np

from launcher.measure.interval import Interval
from launcher.speculation.evidence import Point
from launcher.speculation.model import Model, StepTime

PUBLISHED = Model(
    # vLLM PR 26504: alone 33.8 tokens/s without and 56.4 with K 4; 32 at once 867.8 without, a fixed K loses 16 %;
    # of drafted tokens 0.86 to 0.91 are accepted. Four equations, four unknowns.
    StepTime(fixed=0.029351, request=0.000235, draft=0.011570, token=0.0008865),
    acceptance=0.945,
    error=0.0,
)
"""Acceptance of one token after accepted ones: 4 drafted tokens of which 88 in 100 are accepted."""


def truth(model, method, k, concurrency, temperature=0.0):
    """A point without noise."""
    value = model.throughput(concurrency, k)
    return point(method if k else "off", k, concurrency, value, 0.0, temperature, model.length(k))


def measured(model, method, k, concurrency, rng, noise, temperature=0.0, slices=8):
    """What a visit would tell: the noise of the visit, and the interval that its slices give."""
    value = model.throughput(concurrency, k)
    seen = value * np.exp(rng.normal(0, noise, slices))
    half = 2.365 * float(seen.std(ddof=1)) / math.sqrt(slices)
    return point(method if k else "off", k, concurrency, float(seen.mean()), half, temperature, model.length(k))


def point(method, k, concurrency, value, half, temperature=0.0, length=None, requests=100):
    rate = Interval(value, value - half, value + half)
    return Point(
        method=method,
        k=k,
        concurrency=concurrency,
        temperature=temperature,
        goodput=rate,
        throughput=rate,
        tpot=Interval(concurrency / value, 0.0, math.inf),
        ttft=Interval(0.1, 0.1, 0.1),
        acceptance=(length - 1) / k if k and length else None,
        acceptance_length=length if k else None,
        requests=requests,
        failed=0,
    )
