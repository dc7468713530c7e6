"""Blocks, groups and what fits, as vLLM 0.32 counts. Figures of real engines are in ``tests/real/test_sizes.py``."""

import pytest

from launcher.sizing.kv_cache import InFlight, LayerCache, element_size, largest, layer_caches, layout, stage_sizes
from tests.launcher.sizing.models import architecture

KIB, MIB = 2**10, 2**20
NOTHING = InFlight(0)


def full(number, size=KIB):
    return [LayerCache(size, None)] * number


def window(number, tokens, size=KIB):
    return [LayerCache(size, tokens)] * number


def test_a_request_takes_whole_blocks_and_one_is_always_held_back():
    cache = layout(full(4), 16, NOTHING)
    assert (cache.bytes_per_block, cache.bytes_per_token) == (64 * KIB, 4 * KIB)
    assert [cache.blocks_per_request(tokens) for tokens in (1, 16, 17)] == [1, 1, 2]
    assert cache.needed(32) == 3 * 64 * KIB
    assert cache.longest(3 * 64 * KIB, 1000) == 32
    assert cache.longest(3 * 64 * KIB - 1, 1000) == 16
    assert cache.longest(64 * KIB, 1000) == 0
    assert cache.longest(100 * MIB, 1000) == 1000


def test_the_size_that_is_logged_is_that_of_requests_of_full_length():
    cache = layout(full(4), 16, NOTHING)
    assert cache.concurrency(10 * 64 * KIB, 20) == 5.0
    assert cache.tokens(10 * 64 * KIB, 20) == 100
    assert cache.tokens(10 * 64 * KIB, 32) == 160


def test_layers_with_one_window_keep_it_and_what_is_under_way():
    cache = layout(window(4, 100), 16, InFlight(50))
    assert cache.blocks_per_request(1000) == -(-149 // 16) + 1
    assert cache.blocks_per_request(40) == 4  # a window may begin within a block
    assert layout(window(4, 100), 16, InFlight(50, retained=10)).blocks_per_request(1000) == -(-159 // 16) + 1


def test_mixed_layers_share_a_pool_in_groups_of_the_smaller_kind():
    cache = layout(full(2) + window(10, 64), 16, NOTHING)
    assert [group.layers for group in cache.groups] == [2] * 6
    assert cache.bytes_per_block == 2 * 16 * KIB
    assert cache.blocks_per_request(1000) == 63 + 5 * 5
    assert cache.bytes_per_token == 2 * KIB


def test_kinds_of_nearly_the_same_number_become_two_groups():
    cache = layout(full(13) + window(12, 64), 16, NOTHING)
    assert [group.layers for group in cache.groups] == [13, 12]
    assert cache.bytes_per_block == 13 * 16 * KIB


def test_a_connector_that_cannot_do_with_windows_makes_all_layers_keep_all():
    cache = layout(full(2) + window(10, 64), 16, NOTHING, windows=False)
    assert [group.window for group in cache.groups] == [None]
    assert cache.bytes_per_block == 12 * 16 * KIB


def test_a_model_of_windows_alone_keeps_them_even_so():
    assert layout(window(4, 100), 16, NOTHING, windows=False).groups[0].window == 100


def test_a_draft_with_smaller_layers_shares_the_group_where_there_are_no_windows():
    cache = layout([*full(4), *full(2, 256)], 16, NOTHING)
    assert len(cache.groups) == 1
    assert cache.bytes_per_block == 16 * (4 * KIB + 2 * 256)


def test_a_draft_beside_windows_gets_larger_blocks_of_the_same_bytes():
    cache = layout([*full(2), *window(2, 64), *full(2, 256)], 16, NOTHING)
    assert sorted(group.block_size for group in cache.groups) == [16, 16, 64]
    assert cache.bytes_per_block == 2 * 16 * KIB


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"), [(8, 1, [8]), (9, 2, [5, 4]), (80, 3, [27, 27, 26]), (7, 4, [2, 2, 2, 1])]
)
def test_stages_of_a_pipeline_are_divided_as_vllm_does(layers, stages, sizes):
    assert stage_sizes(layers, stages) == sizes


def test_the_stage_with_most_layers_decides():
    assert layout(full(9), 16, NOTHING, stages=2).bytes_per_block == 5 * 16 * KIB


def test_heads_are_shared_out_until_each_device_has_one():
    model = architecture("llama-3.1-70b")
    sizes = [layer_caches(model, element=2, tensor_parallel=width)[0].bytes_per_token for width in (1, 2, 8, 16)]
    assert sizes == [4096, 2048, 512, 512]


def test_a_latent_is_on_every_device():
    model = architecture("deepseek-v3")
    assert {layer_caches(model, element=2, tensor_parallel=width)[0].bytes_per_token for width in (1, 8)} == {1152}


@pytest.mark.parametrize(
    ("kv_dtype", "dtype", "size"),
    [("auto", "bfloat16", 2), ("auto", "float32", 4), ("fp8", "bfloat16", 1), ("fp8_e5m2", "float16", 1),
     ("bfloat16", "float32", 2), ("nvfp4", "bfloat16", None), ("fp8_per_token_head", "bfloat16", None),
     ("fp8_ds_mla", "bfloat16", None)],
)  # fmt: skip
def test_a_number_has_the_bytes_of_its_format(kv_dtype, dtype, size):
    assert element_size(kv_dtype, dtype) == size


@pytest.mark.parametrize(("limit", "found"), [(0, 0), (1, 1), (57, 57), (100, 100), (200, 100)])
def test_the_largest_that_fits_is_found(limit, found):
    assert largest(100, lambda number: number <= limit) == found
