"""Decision: whether the memory of an engine that has ended is free again."""

from collections.abc import Collection, Mapping

from launcher.inventory import DeviceUse

STILL = 64 * 2**20
"""Bytes: free memory that rises by less between two looks stands still."""


def left_by(family: Collection[int], uses: Mapping[str, DeviceUse]) -> dict[str, list[int]]:
    """Device -> the processes of an engine's ``family`` that the driver still lists there."""
    found = {device: sorted(use.pids.intersection(family)) for device, use in uses.items()}
    return {device: pids for device, pids in found.items() if pids}


def rising(before: Mapping[str, DeviceUse], now: Mapping[str, DeviceUse]) -> list[str]:
    """The devices on which memory became free between two looks: the driver still takes back what a process had."""
    return [name for name, use in now.items() if name in before and use.free - before[name].free >= STILL]
