"""Dispatch of TN batch half tc: products under the plan 'batch'.

On NVIDIA H200 with 132 SMs, by its tuning.

Generated from tiles/tunings/h200_132.json; do not edit.
Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Choice, Dispatch


def sm_90(m: int, n: int, k: int, sms: int, align_a: int, align_b: int) -> Choice | None:
    """For sm_90."""
    chunk_part_1 = -(-k // min(max(4718592 // (m * n), 1), 16))
    chunk = max(1, min(k, -(-max(chunk_part_1, min(max(m * n // 32, 512), 4096)) // 64) * 64))
    chunks = -(-k // chunk)
    tiles_128x128 = -(-m // 128) * -(-n // 128)
    # 0: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647 and m <= 128 and n >= 628 and n <= 886 and k >= 16385
    ):
        return Choice(
            0, ("wgmma_tn_bf16_128x128x64_7ec1fd", "reduce_bf16_128x4_225c78"),
            (min(tiles_128x128 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_128x224 = -(-m // 128) * -(-n // 224)
    # 1: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 224 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x224 + sms <= 4294967295
        and -(-n // 224) * 8 <= 4294967295 and m >= 2049 and n >= 7663 and k >= 16385
    ):
        return Choice(
            1, ("wgmma_tn_bf16_128x224x64_5bb08c",), (min(tiles_128x224, sms // 1) * 1,), (),
        )
    tiles_64x128 = -(-m // 64) * -(-n // 128)
    # 2: measured at 1 problem: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_64x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 628 and m <= 2048 and n >= 628 and n <= 1773
        and k <= 181
    ):
        return Choice(
            2, ("wgmma_tn_bf16_64x128x64_af4e2a",), (min(tiles_64x128, sms // 1) * 1,), (),
        )
    tiles_64x64 = -(-m // 64) * -(-n // 64)
    # 3: measured at 1 problem: 8 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647 and m <= 128 and n <= 1773 and k >= 4097 and k <= 16384
    ):
        return Choice(
            3, ("wgmma_tn_bf16_64x64x64_6a45e2", "reduce_bf16_128x4_225c78"),
            (min(tiles_64x64 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    tiles_192x192 = -(-m // 192) * -(-n // 192)
    # 4: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and chunks <= 2
        and tiles_192x192 * 2 <= 2147483647 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 + sms <= 4294967295
        and -(-n // 192) * 8 <= 4294967295 and m <= 128 and k >= 4097
    ):
        return Choice(4, ("wgmma_tn_bf16_192x192x64_7b3f77",), (tiles_192x192 * 2,), ())
    tiles_192x96 = -(-m // 192) * -(-n // 96)
    # 5: measured at 2 problems: 7 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 96 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x96 + sms <= 4294967295
        and -(-n // 96) * 8 <= 4294967295 and m <= 886 and n >= 1774 and n <= 7662 and k >= 182
    ):
        return Choice(
            5, ("wgmma_tn_bf16_192x96x64_205679",), (min(tiles_192x96, sms // 1) * 1,), (),
        )
    tiles_64x32 = -(-m // 64) * -(-n // 32)
    # 6: measured at 2 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m <= 2048 and n <= 128
    ):
        return Choice(6, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), ())
    tiles_128x256 = -(-m // 128) * -(-n // 256)
    # 7: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 2049 and n <= 886
    ):
        return Choice(
            7, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    tiles_128x64 = -(-m // 128) * -(-n // 64)
    # 8: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and m <= 2048 and n >= 887 and n <= 1773
    ):
        return Choice(
            8, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 9: measured at 1 problem: 49 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647 and m <= 2048 and n <= 627 and k >= 4097 and k <= 16384
    ):
        return Choice(
            9, ("wgmma_tn_bf16_64x64x64_6a45e2", "reduce_bf16_128x4_225c78"),
            (min(tiles_64x64 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    # 10: measured at 2 problems: 4 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and m >= 887 and m <= 2048 and n >= 3548 and k <= 1024
    ):
        return Choice(
            10, ("wgmma_tn_bf16_128x128x64_89114b",), (min(tiles_128x128, sms // 1) * 1,), (),
        )
    tiles_192x128 = -(-m // 192) * -(-n // 128)
    # 11: measured at 3 problems: 5 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x128 + sms <= 4294967295
        and -(-n // 128) * 8 <= 4294967295 and n >= 1774 and k <= 181
    ):
        return Choice(
            11, ("wgmma_tn_bf16_192x128x64_d6d4e6",), (min(tiles_192x128, sms // 1) * 1,), (),
        )
    # 12: not measured: as the nearest measured problem
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 192 <= 2147483647
        and n + 96 <= 2147483647 and k + 64 <= 2147483647 and tiles_192x96 + sms <= 4294967295
        and -(-n // 96) * 8 <= 4294967295 and m >= 628 and m <= 2048 and n >= 887 and n <= 3547
    ):
        return Choice(
            12, ("wgmma_tn_bf16_192x96x64_205679",), (min(tiles_192x96, sms // 1) * 1,), (),
        )
    # 13: measured at 4 problems: 18 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 192 <= 2147483647
        and n + 192 <= 2147483647 and k + 64 <= 2147483647
        and tiles_192x192 * chunks + sms <= 4294967295 and -(-n // 192) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647 and m >= 129 and m <= 2048 and n >= 129 and n <= 3547
        and k >= 16385
    ):
        return Choice(
            13, ("wgmma_tn_bf16_192x192x64_0ee058", "reduce_bf16_128x4_225c78"),
            (min(tiles_192x192 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    # 14: measured at 2 problems: 38 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647 and m >= 129 and n >= 129 and n <= 886 and k >= 16385
    ):
        return Choice(
            14, ("wgmma_tn_bf16_128x128x64_7ec1fd", "reduce_bf16_128x4_225c78"),
            (min(tiles_128x128 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    # 15: measured at 2 problems: 3 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 64 <= 2147483647
        and n + 32 <= 2147483647 and k + 128 <= 2147483647 and tiles_64x32 + sms <= 4294967295
        and -(-n // 32) * 8 <= 4294967295 and m <= 627 and n <= 886 and k >= 182
    ):
        return Choice(
            15, ("wgmma_tn_bf16_64x32x128_a91cb8",), (min(tiles_64x32, sms // 1) * 1,), (),
        )
    # 16: measured at 1 problem: 6 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1) and chunks <= 2
        and tiles_192x192 * 2 <= 2147483647 and m + 192 <= 2147483647 and n + 192 <= 2147483647
        and k + 64 <= 2147483647 and tiles_192x192 + sms <= 4294967295
        and -(-n // 192) * 8 <= 4294967295 and m <= 886 and n >= 1774 and n <= 7662 and k >= 4097
    ):
        return Choice(16, ("wgmma_tn_bf16_192x192x64_7b3f77",), (tiles_192x192 * 2,), ())
    # 17: measured at 3 problems: 19 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 64 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647
        and tiles_64x64 * chunks + sms <= 4294967295 and -(-n // 64) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647 and m <= 627 and n <= 886 and k >= 1025
    ):
        return Choice(
            17, ("wgmma_tn_bf16_64x64x64_6a45e2", "reduce_bf16_128x4_225c78"),
            (min(tiles_64x64 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    # 18: measured at 18 problems: 2 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 256 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x256 + sms <= 4294967295
        and -(-n // 256) * 16 <= 4294967295 and m >= 887 and n >= 887
    ):
        return Choice(
            18, ("wgmma_tn_bf16_128x256x64_9bf432",), (min(tiles_128x256, sms // 1) * 1,), (),
        )
    # 19: measured at 3 problems: 1 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and chunks <= 1 and sms >= 1 and m + 128 <= 2147483647
        and n + 64 <= 2147483647 and k + 64 <= 2147483647 and tiles_128x64 + sms <= 4294967295
        and -(-n // 64) * 8 <= 4294967295 and k <= 4096
    ):
        return Choice(
            19, ("wgmma_tn_bf16_128x64x64_701c99",), (min(tiles_128x64, sms // 1) * 1,), (),
        )
    # 20: measured at 1 problem: 10 % faster than the next
    if (
        align_a >= 16 and align_b >= 16 and (chunk % 64 == 0 or chunks <= 1)
        and chunks * m * n * 4 <= 268435456 and sms >= 1 and m + 128 <= 2147483647
        and n + 128 <= 2147483647 and k + 64 <= 2147483647
        and tiles_128x128 * chunks + sms <= 4294967295 and -(-n // 128) * 8 <= 4294967295
        and -(-(m * n) // 512) <= 2147483647
    ):
        return Choice(
            20, ("wgmma_tn_bf16_128x128x64_7ec1fd", "reduce_bf16_128x4_225c78"),
            (min(tiles_128x128 * chunks, sms // 1) * 1, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    # 21: measured at 2 problems: 9 % faster than the next
    if chunks <= 1 and align_a >= 16:
        return Choice(21, ("mma_tn_bf16_64x64x32_b35a87",), (min(tiles_64x64, 2147483647),), ())
    # 22: measured at 2 problems: 9 % faster than the next
    if chunks <= 1 and n >= 1027:
        return Choice(22, ("mma_tn_bf16_64x64x32_b35a87",), (min(tiles_64x64, 2147483647),), ())
    tiles_16x32 = -(-m // 16) * -(-n // 32)
    # 23: measured at 1 problem: 40 % faster than the next
    if chunks <= 1 and tiles_16x32 <= 2147483647 and n <= 1026:
        return Choice(23, ("mma_tn_bf16_16x32x128_f3a7d2",), (tiles_16x32,), ())
    # 24: measured at 1 problem: the only kernel
    if (
        chunks * m * n * 4 <= 268435456 and tiles_64x64 * chunks <= 2147483647
        and -(-(m * n) // 512) <= 2147483647
    ):
        return Choice(
            24, ("mma_tn_bf16_64x64x32_ef3edd", "reduce_bf16_128x4_225c78"),
            (tiles_64x64 * chunks, -(-(m * n) // 512)), (chunks * m * n * 4,),
        )
    # 25: operands off 16 bytes
    if align_a >= 4 and align_b >= 4 and chunks <= 1 and tiles_64x64 <= 2147483647:
        return Choice(25, ("mma_tn_bf16_64x64x32_215e25",), (tiles_64x64,), ())
    # 26: everything else: any size and alignment
    if chunks <= 1:
        return Choice(26, ("mma_tn_bf16_64x64x32_b35a87",), (min(tiles_64x64, 2147483647),), ())
    return None


BY_ARCH: dict[str, Dispatch] = {
    "sm_90": sm_90,
}
