"""Decision: drawing from a workload's distributions; the same random numbers give the same draws everywhere."""

from random import Random

from launcher.measure.workload import Length, WeightedTemperature


def drawn(length: Length, random: Random) -> int:
    """A whole number of at least 1."""
    if length.constant is not None:
        return length.constant
    if length.values is not None:
        return random.choice(length.values)
    if (uniform := length.uniform) is not None:
        return random.randint(uniform.least, uniform.most)
    if (normal := length.normal) is not None:
        value, least, most = random.gauss(normal.mean, normal.deviation), normal.least, normal.most
    else:
        assert length.lognormal is not None, "a length has exactly one distribution"
        lognormal = length.lognormal
        value = lognormal.median * random.lognormvariate(0, lognormal.sigma)
        least, most = lognormal.least, lognormal.most
    return min(most, max(least, round(value)))


def temperature(temperatures: list[WeightedTemperature], random: Random) -> float:
    """One of them, by weight."""
    return random.choices(temperatures, [each.weight for each in temperatures])[0].value
