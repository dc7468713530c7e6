"""Experiments on live traffic: two pools of a running deployment compared, by the proxy's split."""
