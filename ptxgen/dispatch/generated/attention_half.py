"""Dispatch of attention half: attention.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from collections.abc import Iterator

from ptxgen.dispatch.choice import Candidate, Choice, Time

SOME_0 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"))
SOME_1 = frozenset(("sm_90", "sm_100", "sm_103", "sm_110"))
SOME_2 = frozenset(("sm_90",))
SOME_3 = frozenset(("sm_80", "sm_87", "sm_90", "sm_100", "sm_103", "sm_110"))


def candidates(
    table: str, arch: str, rows: int, ragged: int, pairs: int, keys: int, depth: int, width: int,
    paged: int, maps: int, sms: int, time: Time,
) -> Iterator[Candidate]:
    """Yields the routes that serve a problem, with predicted times."""
    further = max(rows - ragged, 0)
    splits = -(-keys // 1024)
    tiles_16 = (further // 16 + ragged) * pairs
    tiles_128 = (further // 128 + ragged) * pairs
    decode_tiles = max(ragged, -(-rows // 16)) * pairs
    # 0: few rows and keys: 8 warps share 16 rows and load all keys together
    if (
        arch in SOME_0 and keys <= 128 and (further // 16 + ragged) * pairs * 1 <= 2147483647
        and (rows <= ragged * 16 or tiles_16 <= sms)
    ):
        choice = Choice(
            0, ("attention_few_bf16_128_16_c55e59",), ((further // 16 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 1: few rows and keys: 16 warps share 16 rows and load all keys together
    if (
        arch in SOME_1 and keys <= 256 and depth <= 192 and width <= 192
        and (further // 16 + ragged) * pairs * 1 <= 2147483647 and tiles_16 <= sms
    ):
        choice = Choice(
            1, ("attention_few_bf16_128_16_1c3c78",), ((further // 16 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    pieces_maps_keys1024 = maps * -(-keys // 1024)
    # 2: Hopper: wgmma and TMA, bit map of the mask; few rows, many keys: a CTA computes a split
    if (
        arch in SOME_2 and maps >= 1 and keys <= 65536 and pieces_maps_keys1024 * 4096 <= 1073741824
        and paged == 0 and width <= 192
        and (further // 64 + ragged) * pairs * splits + sms * 2 <= 2147483647
        and (further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) <= 67108864
        and (further // 64 + ragged) * pairs * 16 <= 2147483647 and rows > ragged * 16
        and tiles_128 < sms * 2
        and not (
            depth <= 96 and width <= 96
            and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        ) and -(-(tiles_128 * splits) // sms) * 5 < -(-tiles_128 // sms) * splits * 3
        and (rows <= 64 or (further // 64 + ragged) * pairs * splits <= sms)
    ):
        choice = Choice(
            2,
            (
                "attention_mask_b8_8_69e8be", "attention_wgmma_masked_split_bf16_128_64_8aadb3",
                "attention_join_bf16_128_64_78c4b7",
            ),
            (
                pieces_maps_keys1024, min((further // 64 + ragged) * pairs * splits, sms * 2),
                (further // 64 + ragged) * pairs * 16,
            ),
            (
                pieces_maps_keys1024 * 4096, pieces_maps_keys1024 * 8,
                (further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) * 4,
            ),
        )
        yield Candidate(0.0, choice)
        return
    # 3: Hopper: wgmma and TMA, bit map of the mask; few rows, many keys: a CTA computes a split
    if (
        arch in SOME_2 and maps >= 1 and keys <= 65536 and pieces_maps_keys1024 * 4096 <= 1073741824
        and paged == 0 and (further // 128 + ragged) * pairs * splits + sms * 1 <= 2147483647
        and (further // 128 + ragged) * pairs * splits * min(rows, 128) * (width + 4) <= 67108864
        and (further // 128 + ragged) * pairs * 32 <= 2147483647 and rows > 64
        and rows > ragged * 16 and tiles_128 < sms * 2
        and not (
            depth <= 96 and width <= 96
            and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        ) and -(-(tiles_128 * splits) // sms) * 5 < -(-tiles_128 // sms) * splits * 3
    ):
        choice = Choice(
            3,
            (
                "attention_mask_b8_8_69e8be", "attention_wgmma_masked_split_bf16_128_128_2a8318",
                "attention_join_bf16_128_128_3636ba",
            ),
            (
                pieces_maps_keys1024, min((further // 128 + ragged) * pairs * splits, sms * 1),
                (further // 128 + ragged) * pairs * 32,
            ),
            (
                pieces_maps_keys1024 * 4096, pieces_maps_keys1024 * 8,
                (further // 128 + ragged) * pairs * splits * min(rows, 128) * (width + 4) * 4,
            ),
        )
        yield Candidate(0.0, choice)
        return
    # 4: Hopper: wgmma and TMA, bit map of the mask; three consumer warpgroups
    if (
        arch in SOME_2 and maps >= 1 and keys <= 65536 and pieces_maps_keys1024 * 4096 <= 1073741824
        and paged == 0 and width <= 128
        and (further // 192 + ragged) * pairs * 1 + sms * 1 <= 2147483647
        and (sms * 768 * width if width > 85 and splits > 1 else 0) <= 268435456 and rows > 64
        and rows > ragged * 16 and rows > 96 and depth <= 96 and width <= 96
        and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        and not (
            depth <= 128 and width <= 128 and keys <= 4096
            and (further // 64 + ragged) * pairs <= sms * 2
        )
    ):
        choice = Choice(
            4, ("attention_mask_b8_8_69e8be", "attention_wgmma_masked_bf16_64_192_d1f66b"),
            (pieces_maps_keys1024, min((further // 192 + ragged) * pairs * 1, sms * 1)),
            (
                pieces_maps_keys1024 * 4096, pieces_maps_keys1024 * 8,
                sms * 768 * width if width > 85 and splits > 1 else 0,
            ),
        )
        yield Candidate(0.0, choice)
        return
    # 5: Hopper: wgmma and TMA, bit map of the mask; one consumer warpgroup
    if (
        arch in SOME_2 and maps >= 1 and keys <= 65536 and pieces_maps_keys1024 * 4096 <= 1073741824
        and paged == 0 and width <= 192
        and (further // 64 + ragged) * pairs * 1 + sms * 2 <= 2147483647
        and (sms * 512 * width if width > 96 and splits > 1 else 0) <= 268435456
        and rows > ragged * 16
        and (
            (
                depth <= 128 and width <= 128 and keys <= 4096
                and (further // 64 + ragged) * pairs <= sms * 2
            )
            or (
                width <= 192
                and (keys <= 512 or rows <= 64 or (further // 64 + ragged) * pairs <= sms)
            )
        )
    ):
        choice = Choice(
            5, ("attention_mask_b8_8_69e8be", "attention_wgmma_masked_bf16_128_64_0517fc"),
            (pieces_maps_keys1024, min((further // 64 + ragged) * pairs * 1, sms * 2)),
            (
                pieces_maps_keys1024 * 4096, pieces_maps_keys1024 * 8,
                sms * 512 * width if width > 96 and splits > 1 else 0,
            ),
        )
        yield Candidate(0.0, choice)
        return
    # 6: Hopper: wgmma and TMA, bit map of the mask; two consumer warpgroups
    if (
        arch in SOME_2 and maps >= 1 and keys <= 65536 and pieces_maps_keys1024 * 4096 <= 1073741824
        and paged == 0 and (further // 128 + ragged) * pairs * 1 + sms * 1 <= 2147483647
        and (sms * 512 * width if width > 128 and splits > 1 else 0) <= 268435456
        and rows > ragged * 16
        and (
            width <= 192
            or not (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        )
    ):
        choice = Choice(
            6, ("attention_mask_b8_8_69e8be", "attention_wgmma_masked_bf16_128_128_1bf0ad"),
            (pieces_maps_keys1024, min((further // 128 + ragged) * pairs * 1, sms * 1)),
            (
                pieces_maps_keys1024 * 4096, pieces_maps_keys1024 * 8,
                sms * 512 * width if width > 128 and splits > 1 else 0,
            ),
        )
        yield Candidate(0.0, choice)
        return
    # 7: Hopper: wgmma and TMA; few rows, many keys: a CTA computes a split
    if (
        arch in SOME_2 and paged == 0 and width <= 192
        and (further // 64 + ragged) * pairs * splits + sms * 2 <= 2147483647
        and (further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) <= 67108864
        and (further // 64 + ragged) * pairs * 16 <= 2147483647 and rows > ragged * 16
        and tiles_128 < sms * 2
        and not (
            depth <= 96 and width <= 96
            and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        ) and -(-(tiles_128 * splits) // sms) * 5 < -(-tiles_128 // sms) * splits * 3
        and (rows <= 64 or (further // 64 + ragged) * pairs * splits <= sms)
    ):
        choice = Choice(
            7, ("attention_wgmma_split_bf16_128_64_4361de", "attention_join_bf16_128_64_78c4b7"),
            (
                min((further // 64 + ragged) * pairs * splits, sms * 2),
                (further // 64 + ragged) * pairs * 16,
            ), ((further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 8: Hopper: wgmma and TMA; few rows, many keys: a CTA computes a split
    if (
        arch in SOME_2 and paged == 0
        and (further // 128 + ragged) * pairs * splits + sms * 1 <= 2147483647
        and (further // 128 + ragged) * pairs * splits * min(rows, 128) * (width + 4) <= 67108864
        and (further // 128 + ragged) * pairs * 32 <= 2147483647 and rows > 64
        and rows > ragged * 16 and tiles_128 < sms * 2
        and not (
            depth <= 96 and width <= 96
            and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        ) and -(-(tiles_128 * splits) // sms) * 5 < -(-tiles_128 // sms) * splits * 3
    ):
        choice = Choice(
            8, ("attention_wgmma_split_bf16_128_128_b641ac", "attention_join_bf16_128_128_3636ba"),
            (
                min((further // 128 + ragged) * pairs * splits, sms * 1),
                (further // 128 + ragged) * pairs * 32,
            ), ((further // 128 + ragged) * pairs * splits * min(rows, 128) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 9: Hopper: wgmma and TMA; three consumer warpgroups
    if (
        arch in SOME_2 and paged == 0 and width <= 128
        and (further // 192 + ragged) * pairs * 1 + sms * 1 <= 2147483647
        and (sms * 768 * width if width > 85 and splits > 1 else 0) <= 268435456 and rows > 64
        and rows > ragged * 16 and rows > 96 and depth <= 96 and width <= 96
        and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        and not (
            depth <= 128 and width <= 128 and keys <= 4096
            and (further // 64 + ragged) * pairs <= sms * 2
        )
    ):
        choice = Choice(
            9, ("attention_wgmma_bf16_64_192_224e61",),
            (min((further // 192 + ragged) * pairs * 1, sms * 1),),
            (sms * 768 * width if width > 85 and splits > 1 else 0,),
        )
        yield Candidate(0.0, choice)
        return
    # 10: Hopper: wgmma and TMA; one consumer warpgroup
    if (
        arch in SOME_2 and paged == 0 and width <= 192
        and (further // 64 + ragged) * pairs * 1 + sms * 2 <= 2147483647
        and (sms * 512 * width if width > 96 and splits > 1 else 0) <= 268435456
        and rows > ragged * 16
        and (
            (
                depth <= 128 and width <= 128 and keys <= 4096
                and (further // 64 + ragged) * pairs <= sms * 2
            )
            or (
                width <= 192
                and (keys <= 512 or rows <= 64 or (further // 64 + ragged) * pairs <= sms)
            )
        )
    ):
        choice = Choice(
            10, ("attention_wgmma_bf16_128_64_a0c370",),
            (min((further // 64 + ragged) * pairs * 1, sms * 2),),
            (sms * 512 * width if width > 96 and splits > 1 else 0,),
        )
        yield Candidate(0.0, choice)
        return
    # 11: Hopper: wgmma and TMA; two consumer warpgroups
    if (
        arch in SOME_2 and paged == 0
        and (further // 128 + ragged) * pairs * 1 + sms * 1 <= 2147483647
        and (sms * 512 * width if width > 128 and splits > 1 else 0) <= 268435456
        and rows > ragged * 16
        and (
            width <= 192
            or not (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        )
    ):
        choice = Choice(
            11, ("attention_wgmma_bf16_128_128_6abddf",),
            (min((further // 128 + ragged) * pairs * 1, sms * 1),),
            (sms * 512 * width if width > 128 and splits > 1 else 0,),
        )
        yield Candidate(0.0, choice)
        return
    # 12: Hopper: wgmma and TMA, paged keys; few rows, many keys: a CTA computes a split
    if (
        arch in SOME_2 and paged >= 16 and width <= 192
        and (further // 64 + ragged) * pairs * splits + sms * 2 <= 2147483647
        and (further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) <= 67108864
        and (further // 64 + ragged) * pairs * 16 <= 2147483647 and rows > ragged * 16
        and tiles_128 < sms * 2
        and not (
            depth <= 96 and width <= 96
            and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        ) and -(-(tiles_128 * splits) // sms) * 5 < -(-tiles_128 // sms) * splits * 3
        and (rows <= 64 or (further // 64 + ragged) * pairs * splits <= sms)
    ):
        choice = Choice(
            12,
            ("attention_wgmma_paged_split_bf16_128_64_7c1a3e", "attention_join_bf16_128_64_78c4b7"),
            (
                min((further // 64 + ragged) * pairs * splits, sms * 2),
                (further // 64 + ragged) * pairs * 16,
            ), ((further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 13: Hopper: wgmma and TMA, paged keys; few rows, many keys: a CTA computes a split
    if (
        arch in SOME_2 and paged >= 16
        and (further // 128 + ragged) * pairs * splits + sms * 1 <= 2147483647
        and (further // 128 + ragged) * pairs * splits * min(rows, 128) * (width + 4) <= 67108864
        and (further // 128 + ragged) * pairs * 32 <= 2147483647 and rows > 64
        and rows > ragged * 16 and tiles_128 < sms * 2
        and not (
            depth <= 96 and width <= 96
            and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        ) and -(-(tiles_128 * splits) // sms) * 5 < -(-tiles_128 // sms) * splits * 3
    ):
        choice = Choice(
            13,
            (
                "attention_wgmma_paged_split_bf16_128_128_27fc13",
                "attention_join_bf16_128_128_3636ba",
            ),
            (
                min((further // 128 + ragged) * pairs * splits, sms * 1),
                (further // 128 + ragged) * pairs * 32,
            ), ((further // 128 + ragged) * pairs * splits * min(rows, 128) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 14: Hopper: wgmma and TMA, paged keys; three consumer warpgroups
    if (
        arch in SOME_2 and paged >= 16 and width <= 128
        and (further // 192 + ragged) * pairs * 1 + sms * 1 <= 2147483647
        and (sms * 768 * width if width > 85 and splits > 1 else 0) <= 268435456 and rows > 64
        and rows > ragged * 16 and rows > 96 and depth <= 96 and width <= 96
        and -(-((further // 192 + ragged) * pairs) // sms) * 4 <= -(-tiles_128 // sms) * 3
        and not (
            depth <= 128 and width <= 128 and keys <= 4096
            and (further // 64 + ragged) * pairs <= sms * 2
        )
    ):
        choice = Choice(
            14, ("attention_wgmma_paged_bf16_64_192_133798",),
            (min((further // 192 + ragged) * pairs * 1, sms * 1),),
            (sms * 768 * width if width > 85 and splits > 1 else 0,),
        )
        yield Candidate(0.0, choice)
        return
    # 15: Hopper: wgmma and TMA, paged keys; one consumer warpgroup
    if (
        arch in SOME_2 and paged >= 16 and width <= 192
        and (further // 64 + ragged) * pairs * 1 + sms * 2 <= 2147483647
        and (sms * 512 * width if width > 96 and splits > 1 else 0) <= 268435456
        and rows > ragged * 16
        and (
            (
                depth <= 128 and width <= 128 and keys <= 4096
                and (further // 64 + ragged) * pairs <= sms * 2
            )
            or (
                width <= 192
                and (keys <= 512 or rows <= 64 or (further // 64 + ragged) * pairs <= sms)
            )
        )
    ):
        choice = Choice(
            15, ("attention_wgmma_paged_bf16_128_64_ddbeea",),
            (min((further // 64 + ragged) * pairs * 1, sms * 2),),
            (sms * 512 * width if width > 96 and splits > 1 else 0,),
        )
        yield Candidate(0.0, choice)
        return
    # 16: Hopper: wgmma and TMA, paged keys; two consumer warpgroups
    if (
        arch in SOME_2 and paged >= 16
        and (further // 128 + ragged) * pairs * 1 + sms * 1 <= 2147483647
        and (sms * 512 * width if width > 128 and splits > 1 else 0) <= 268435456
        and rows > ragged * 16
        and (
            width <= 192
            or not (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        )
    ):
        choice = Choice(
            16, ("attention_wgmma_paged_bf16_128_128_e230e2",),
            (min((further // 128 + ragged) * pairs * 1, sms * 1),),
            (sms * 512 * width if width > 128 and splits > 1 else 0,),
        )
        yield Candidate(0.0, choice)
        return
    # 17: few rows: a cluster of 4 CTAs shares 16 rows
    if (
        arch in SOME_1 and splits == 1 and depth <= 128 and width <= 128
        and (further // 16 + ragged) * pairs * 1 * 4 <= 2147483647 and rows <= ragged * 16
        and keys > 256
        and (
            decode_tiles * splits * 4 * 16 <= sms * 15
            or (paged > 0 and decode_tiles * splits * 4 <= sms)
        )
    ):
        choice = Choice(
            17, ("attention_cluster_bf16_128_16_5d07f1",),
            ((further // 16 + ragged) * pairs * 1 * 4,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 18: few rows: a cluster of 4 CTAs shares 16 rows
    if (
        arch in SOME_1 and depth <= 128 and width <= 128
        and (further // 16 + ragged) * pairs * splits * 4 <= 2147483647
        and (further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) <= 67108864
        and (further // 16 + ragged) * pairs * 4 <= 2147483647 and rows <= ragged * 16
        and keys > 256 and splits > 1
        and (
            decode_tiles * splits * 4 * 16 <= sms * 15
            or (paged > 0 and decode_tiles * splits * 4 <= sms)
        )
    ):
        choice = Choice(
            18,
            (
                "attention_cluster_split_bf16_128_16_4f69be",
                "attention_decode_join_bf16_128_16_47071a",
            ),
            ((further // 16 + ragged) * pairs * splits * 4, (further // 16 + ragged) * pairs * 4),
            ((further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 19: few rows: a cluster of 8 CTAs shares 16 rows
    if (
        arch in SOME_1 and splits == 1 and (further // 16 + ragged) * pairs * 1 * 8 <= 2147483647
        and rows <= ragged * 16 and keys > 256
        and (
            decode_tiles * splits * 8 * 16 <= sms * 15
            or (paged > 0 and decode_tiles * splits * 8 <= sms)
        )
    ):
        choice = Choice(
            19, ("attention_cluster_bf16_128_16_182c19",),
            ((further // 16 + ragged) * pairs * 1 * 8,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 20: few rows: a cluster of 8 CTAs shares 16 rows
    if (
        arch in SOME_1 and (further // 16 + ragged) * pairs * splits * 8 <= 2147483647
        and (further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) <= 67108864
        and (further // 16 + ragged) * pairs * 4 <= 2147483647 and rows <= ragged * 16
        and keys > 256 and splits > 1
        and (
            decode_tiles * splits * 8 * 16 <= sms * 15
            or (paged > 0 and decode_tiles * splits * 8 <= sms)
        )
    ):
        choice = Choice(
            20,
            (
                "attention_cluster_split_bf16_128_16_ac2156",
                "attention_decode_join_bf16_128_16_47071a",
            ),
            ((further // 16 + ragged) * pairs * splits * 8, (further // 16 + ragged) * pairs * 4),
            ((further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 21: few rows: 16 warps share 16 rows, a CTA streams a split of the keys
    if (
        arch in SOME_1 and depth <= 128 and width <= 128
        and (further // 16 + ragged) * pairs * splits <= 2147483647
        and (further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) <= 67108864
        and (further // 16 + ragged) * pairs * 4 <= 2147483647
        and (
            rows <= ragged * 16
            or (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        ) and splits > 1
        and (
            splits > 4
            or (
                not (sms * 9 <= decode_tiles * 10 and decode_tiles <= sms * 2)
                and -(-decode_tiles // (sms * 2)) * sms * 16 > decode_tiles * 9
            )
        ) and decode_tiles * splits <= sms
    ):
        choice = Choice(
            21,
            (
                "attention_decode_split_bf16_128_16_b05ffd",
                "attention_decode_join_bf16_128_16_47071a",
            ), ((further // 16 + ragged) * pairs * splits, (further // 16 + ragged) * pairs * 4),
            ((further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 22: few rows: 8 warps share 16 rows, a CTA streams a split of the keys
    if (
        arch in SOME_0 and (further // 16 + ragged) * pairs * splits <= 2147483647
        and (further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) <= 67108864
        and (further // 16 + ragged) * pairs * 4 <= 2147483647
        and (
            rows <= ragged * 16
            or (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        ) and splits > 1
        and (
            splits > 4
            or (
                not (sms * 9 <= decode_tiles * 10 and decode_tiles <= sms * 2)
                and -(-decode_tiles // (sms * 2)) * sms * 16 > decode_tiles * 9
            )
        ) and tiles_16 <= sms * 16
    ):
        choice = Choice(
            22,
            (
                "attention_decode_split_bf16_128_16_8e2909",
                "attention_decode_join_bf16_128_16_47071a",
            ), ((further // 16 + ragged) * pairs * splits, (further // 16 + ragged) * pairs * 4),
            ((further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 23: few rows: 4 warps share 16 rows, a CTA streams a split of the keys
    if (
        (further // 16 + ragged) * pairs * splits <= 2147483647
        and (further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) <= 67108864
        and (further // 16 + ragged) * pairs * 4 <= 2147483647
        and (
            rows <= ragged * 16
            or (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        ) and splits > 1
        and (
            splits > 4
            or (
                not (sms * 9 <= decode_tiles * 10 and decode_tiles <= sms * 2)
                and -(-decode_tiles // (sms * 2)) * sms * 16 > decode_tiles * 9
            )
        )
    ):
        choice = Choice(
            23,
            (
                "attention_decode_split_bf16_128_16_4e76ec",
                "attention_decode_join_bf16_128_16_47071a",
            ), ((further // 16 + ragged) * pairs * splits, (further // 16 + ragged) * pairs * 4),
            ((further // 16 + ragged) * pairs * splits * min(rows, 16) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 24: few rows: 16 warps share 16 rows, a CTA streams all keys
    if (
        arch in SOME_1 and depth <= 128 and width <= 128
        and (further // 16 + ragged) * pairs * 1 <= 2147483647
        and (
            rows <= ragged * 16
            or (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        ) and tiles_16 <= sms and keys > 128
    ):
        choice = Choice(
            24, ("attention_decode_bf16_128_16_67201f",), ((further // 16 + ragged) * pairs * 1,),
            (),
        )
        yield Candidate(0.0, choice)
        return
    # 25: few rows: 8 warps share 16 rows, a CTA streams all keys
    if (
        arch in SOME_0 and (further // 16 + ragged) * pairs * 1 <= 2147483647
        and (
            rows <= ragged * 16
            or (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        ) and tiles_16 <= sms
    ):
        choice = Choice(
            25, ("attention_decode_bf16_128_16_86f450",), ((further // 16 + ragged) * pairs * 1,),
            (),
        )
        yield Candidate(0.0, choice)
        return
    # 26: few rows: 4 warps share 16 rows, a CTA streams all keys
    if (
        (further // 16 + ragged) * pairs * 1 <= 2147483647
        and (
            rows <= ragged * 16
            or (keys <= 512 and (tiles_16 <= sms or (tiles_16 <= sms * 2 and keys <= 128)))
        )
    ):
        choice = Choice(
            26, ("attention_decode_bf16_128_16_ca344b",), ((further // 16 + ragged) * pairs * 1,),
            (),
        )
        yield Candidate(0.0, choice)
        return
    # 27: portable; few rows, many keys: a CTA computes a split
    if (
        (further // 64 + ragged) * pairs * splits <= 2147483647
        and (further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) <= 67108864
        and (further // 64 + ragged) * pairs * 16 <= 2147483647 and rows > 32 and splits > 1
        and (further // 64 + ragged) * pairs * 1 < sms * 2
    ):
        choice = Choice(
            27, ("attention_split_bf16_128_64_0c676b", "attention_join_bf16_128_64_78c4b7"),
            ((further // 64 + ragged) * pairs * splits, (further // 64 + ragged) * pairs * 16),
            ((further // 64 + ragged) * pairs * splits * min(rows, 64) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 28: portable; a CTA streams all keys
    if arch in SOME_3 and (further // 64 + ragged) * pairs * 1 <= 2147483647 and rows > 32:
        choice = Choice(
            28, ("attention_bf16_128_64_52ca21",), ((further // 64 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
    # 29: portable; few rows, many keys: a CTA computes a split
    if (
        (further // 32 + ragged) * pairs * splits <= 2147483647
        and (further // 32 + ragged) * pairs * splits * min(rows, 32) * (width + 4) <= 67108864
        and (further // 32 + ragged) * pairs * 8 <= 2147483647 and splits > 1
        and (further // 32 + ragged) * pairs * 1 < sms * 2
    ):
        choice = Choice(
            29, ("attention_split_bf16_128_32_c91f63", "attention_join_bf16_128_32_50a8bc"),
            ((further // 32 + ragged) * pairs * splits, (further // 32 + ragged) * pairs * 8),
            ((further // 32 + ragged) * pairs * splits * min(rows, 32) * (width + 4) * 4,),
        )
        yield Candidate(0.0, choice)
        return
    # 30: portable; a CTA streams all keys
    if (further // 32 + ragged) * pairs * 1 <= 2147483647:
        choice = Choice(
            30, ("attention_bf16_128_32_ba4365",), ((further // 32 + ragged) * pairs * 1,), (),
        )
        yield Candidate(0.0, choice)
        return
