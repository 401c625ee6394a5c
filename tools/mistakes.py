"""The mistakes that ``tools/mutate.py`` plants, each with the gate that must catch it.

A mistake is a file, a text that occurs in it once, and what is written in its place. It is one that
somebody might make, in each room that decides bits; the gate is the narrowest that is meant to see
it. A text that is gone fails by the mistake's name: take the nearest text that means the same.
"""

from __future__ import annotations

from dataclasses import dataclass

Command = tuple[str, ...]
"""Arguments of Python."""


@dataclass(frozen=True)
class Mistake:
    """What is planted, and the gate that is to fail for it."""

    what: str
    file: str
    old: str
    new: str
    gate: Command


def tests(file: str, select: str) -> Command:
    """Tests of a file."""
    return ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{file}", "-k", select)


def kernel(*names: str) -> Command:
    """The bits of a kernel, by words of its name, on the CPU device."""
    return *tests("test_interp_kernels.py", " and ".join(("test_bits", *names))), "--long"


def golden(pattern: str) -> Command:
    """The goldens of some kernels."""
    return ("-m", "ptxgen", "golden", "check", "--sample", "0", pattern)


def proofs(table: str) -> Command:
    """The proofs of a table."""
    return ("-m", "ptxgen", "prove", table)


BITS: Command = ("-m", "ptxgen", "golden", "bits")
GENERATED: Command = ("-m", "ptxgen", "generate", "--check")
PASSES = tests("test_passes.py", "")
EPILOGUES = tests("test_epilogues.py", "not every_kernel_has")
SAVED = tests("test_saved.py", "something_else")
TEMPLATES = tests("test_templates.py", "every_line")
SPEC, TEMPLATE, NUMBERS = "ptxgen/spec/", "ptxgen/templates/", "ptxgen/numerics/"

MISTAKES = (
    # -- where kernels are right ----------------------------------------------------------
    Mistake(
        "rows one longer than are held",
        SPEC + "rowwise.py",
        "found.append(COLS <= self.capacity)",
        "found.append(COLS <= self.capacity + 1)",
        kernel("held_32x32_any"),
    ),
    Mistake(
        "elements wider than shared memory has room for",
        SPEC + "rowwise.py",
        "found.append(READ <= self.read)",
        "found.append(READ <= 2 * self.read)",
        kernel("staged_832x32_any"),
    ),
    Mistake(
        "two stages by a route that has one",
        SPEC + "rowwise.py",
        "WAY.eq(1) if self.final and self.stage == 0 else WAY >= 1",
        "WAY >= 1",
        kernel("rows_softmax_bf16_branches0_1024"),
    ),
    Mistake(
        "vectors of rows off 16 bytes",
        SPEC + "rowwise.py",
        "found.append(VECTOR >= 1)",
        "pass",
        kernel("rows_softmax_bf16_held_64x32", "not any"),
    ),
    Mistake(
        "a chain over two chunks, on FMA units",
        SPEC + "simt.py",
        "terms.append(CHUNKS <= 1)",
        "terms.append(CHUNKS <= 8)",
        kernel("simt_nn_bf16_16x32x64"),
    ),
    Mistake(
        "vectors of half their alignment, on FMA units",
        SPEC + "simt.py",
        "terms.append(align >= self.width(operand) * ITEMSIZE[self.dtype])",
        "terms.append(align * 2 >= self.width(operand) * ITEMSIZE[self.dtype])",
        kernel("simt_nn_f32_16x32x32"),
    ),
    Mistake(
        "vectors of any alignment, on tensor cores",
        SPEC + "mma.py",
        "terms.append(align >= MMA_COPIES[copy])",
        "pass",
        kernel("mma_nn_bf16_8x32x128"),
    ),
    Mistake(
        "chunks that end within a turn",
        SPEC + "mma.py",
        "terms.append((CHUNK % self.block).eq(0) | (CHUNKS <= 1))",
        "terms.append((CHUNK % 64).eq(0) | (CHUNKS <= 1))",
        kernel("mma_tn_bf16_8x32x128"),
    ),
    Mistake(
        "results whose rows end within 16 bytes",
        SPEC + "chain.py",
        "whole = (N % (16 // self.item)).eq(0)",
        "whole = (N % (8 // self.item)).eq(0)",
        kernel("wgmma_chain_tn_bf16_64x64x64_f32"),
    ),
    Mistake(
        "columns off what a thread reads",
        SPEC + "columns.py",
        "found += [ALIGN >= self.width, ITEM <= self.width]",
        "found += [ALIGN * 2 >= self.width, ITEM <= self.width]",
        kernel("columns_whole_sum_columns", "16x8"),
    ),
    Mistake(
        "rows longer than what threads hold",
        SPEC + "select.py",
        "return (COLS <= self.owned) & left",
        "return (COLS <= self.owned + 8) & left",
        kernel("topk_sift_whole"),
    ),
    Mistake(
        "an index more than blocks hold",
        SPEC + "moves.py",
        "found.append(COUNT <= SORTED)",
        "found.append(COUNT <= SORTED + 1)",
        tests("test_requires.py", "up_to_their_edges"),
    ),
    Mistake(
        "a grid beyond what the hardware counts",
        SPEC + "rows.py",
        'return all_of((self.scratch["partial"] <= WORKSPACE_MAX, self.grid <= GRID_MAX))',
        "return self.grid <= GRID_MAX",
        proofs("logsumexp"),
    ),
    Mistake(
        "sums of integers that overflow",
        SPEC + "int4.py",
        "return min(max(alone, shared), self.element.k_max)",
        "return min(max(alone, shared) + self.bk, self.element.k_max)",
        proofs("int4_rcr_s4"),
    ),
    Mistake(
        "a table that the dispatcher does not follow",
        "ptxgen/tiles/rows.py",
        "few = (ROWS < SMS * 2) & (SEGMENTS >= 12)",
        "few = (ROWS < SMS * 2) & (SEGMENTS >= 11)",
        GENERATED,
    ),
    # -- what kernels compute -------------------------------------------------------------
    Mistake(
        "a product rounded towards zero",
        TEMPLATE + "simt/gemm.cu.j2",
        "acc[i][j] = __fmaf_rn(fa[i], fb[j], acc[i][j]);",
        "acc[i][j] = __fmaf_rz(fa[i], fb[j], acc[i][j]);",
        kernel("simt_nn_f32_16x32x32"),
    ),
    Mistake(
        "an f64 product rounded twice",
        TEMPLATE + "f64/gemm.cu.j2",
        "acc[i][j] = __fma_rn(a_held[buffer][0][i], b_held[buffer][0][j], acc[i][j]);",
        "acc[i][j] = __dadd_rn(__dmul_rn(a_held[buffer][0][i], b_held[buffer][0][j]), acc[i][j]);",
        kernel("f64_tt_f64_64x32x16"),
    ),
    Mistake(
        "chunks added from the last to the first",
        TEMPLATE + "simt/reduce.cu.j2",
        "v[q] = __fadd_rn(v[q], ahead[b].at[q]);",
        "v[q] = __fadd_rn(v[q], ahead[COUNT - 1 - b].at[q]);",
        kernel("simt_nn_f32_8x16x64_7100c8"),
    ),
    Mistake(
        "a chunk that is left out",
        TEMPLATE + "mma/fragments.cuh.j2",
        "sum[i][j][q] = __fadd_rn(sum[i][j][q], acc[i][j][q]);",
        "sum[i][j][q] = acc[i][j][q];",
        kernel("mma_nn_bf16_16x32x128_0f657a"),
    ),
    Mistake(
        "an addition of +0.0 that is left out",
        TEMPLATE + "mma/gemm.cu.j2",
        "const float low = __fadd_rn(acc[i][j][2 * h], 0.0f)",
        "const float low = acc[i][j][2 * h]",
        golden("mma_nn_bf16_128x128x64_c*"),
    ),
    Mistake(
        "results of rows negated",
        TEMPLATE + "rows/stage.cuh.j2",
        "{{ o.name }}[row] = ptxgen_to_{{ o.dtype }}({{ o.value }});",
        "{{ o.name }}[row] = ptxgen_to_{{ o.dtype }}(-{{ o.value }});",
        golden("rows_*_f64_*"),
    ),
    Mistake(
        "results of rows in shared memory that nobody writes",
        TEMPLATE + "rows/staged.cu.j2",
        '{{ stages.write(plan.row_outputs, "threadIdx.x == 0") }}',
        '{{ stages.write(plan.row_outputs, "threadIdx.x == THREADS") }}',
        golden("rows_*_staged_416x32_any_*"),
    ),
    Mistake(
        "results of rows of several launches that nobody writes",
        TEMPLATE + "rows/combine.cu.j2",
        '{{ stages.write(plan.row_outputs, "threadIdx.x == 0") }}',
        '{{ stages.write(plan.row_outputs, "threadIdx.x == THREADS") }}',
        golden("rows_*_combine1_*"),
    ),
    Mistake(
        "f32 results of elements negated",
        TEMPLATE + "rows/group.cuh.j2",
        "w[q] = __float_as_uint(v[q]);",
        "w[q] = __float_as_uint(-v[q]);",
        golden("rows_rms_norm_f32_held_*"),
    ),
    Mistake(
        "the picked logit negated",
        TEMPLATE + "rows/stage.cuh.j2",
        '{{ r.join(r.name ~ "_a[h]", r.value) }};',
        '{{ r.join(r.name ~ "_a[h]", "-" ~ r.value) }};',
        tests("test_rowwise.py", "walk_over_rows and cross_entropy"),
    ),
    Mistake(
        "the picked logit negated where it lies",
        TEMPLATE + "rows/stage.cuh.j2",
        "{{ r.name }} = {{ r.join(r.name, r.value) }};",
        '{{ r.name }} = {{ r.join(r.name, "-" ~ r.value) }};',
        tests("test_rowwise.py", "oracle and cross_entropy"),
    ),
    Mistake(
        "bounds of results that are taken for results",
        TEMPLATE + "pointwise/elements.cuh.j2",
        "any |= apart[k / 2] = both ^ rounded(high[0], high[1]);",
        "any |= apart[k / 2] = 0;",
        golden("pw_flat_*"),
    ),
    Mistake(
        "sums of segments that miss half of the lanes",
        TEMPLATE + "rows/logsumexp.cu.j2",
        "for (unsigned o = LANES / 2; o > 0; o /= 2) sum = __fadd_rn",
        "for (unsigned o = LANES / 2; o > 1; o /= 2) sum = __fadd_rn",
        kernel("lse_whole_f32"),
    ),
    Mistake(
        "a logarithm added in another order",
        TEMPLATE + "include/exp.cuh.j2",
        "return __fmaf_rn((float)n, {{ f32(activation.LN2_HIGH) }}, __fadd_rn(t, low));",
        "return __fadd_rn(__fmaf_rn((float)n, {{ f32(activation.LN2_HIGH) }}, t), low);",
        kernel("lse_whole_f32"),
    ),
    Mistake(
        "a NaN that an exponential makes a number",
        TEMPLATE + "include/exp.cuh.j2",
        "    return __fmul_rn(__fmul_rn(power, ptxgen_power_of_two(n + 64)), ",
        "    return __fmul_rn(__int_as_float(__float_as_int(power) + (n + 64) * (1 << 23)), ",
        kernel("lse_whole_f32"),
    ),
    Mistake(
        "columns joined in another order",
        TEMPLATE + "rows/columns.cu.j2",
        "if (leaf % BRANCH == BRANCH - 1 || leaf + 1 == leaves) {",
        "if (leaf + 1 == leaves) {",
        kernel("columns_whole_sum_columns", "0x8"),
    ),
    Mistake(
        "integers rounded towards zero",
        TEMPLATE + "int4/epilogue.cuh.j2",
        "return min(max(__float2int_rn(v), LOW), HIGH) & 15u;",
        "return min(max(__float2int_rz(v), LOW), HIGH) & 15u;",
        kernel("int4_rcr_s4_32x32x512"),
    ),
    Mistake(
        "scaled sums rounded towards zero",
        TEMPLATE + "int4/epilogue.cuh.j2",
        "__float_as_uint(__fadd_rn(v, 12582912.f - LOW));",
        "__float_as_uint(__fadd_rz(v, 12582912.f - LOW));",
        tests("test_int4_gemm.py", "scaled_sums"),
    ),
    Mistake(
        "equal elements by descending index",
        TEMPLATE + "select/lanes.cu.j2",
        "(Place)key << KEY_SHIFT | (INDICES - i) : 0;",
        "(Place)key << KEY_SHIFT | i : 0;",
        kernel("topk_lanes"),
    ),
    Mistake(
        "draws one number late",
        TEMPLATE + "select/sample.cu.j2",
        "if (sum > random) y[r] = before + begin + q;",
        "if (sum > random) y[r] = before + begin + q + 1;",
        kernel("sample_bf16_16"),
    ),
    Mistake(
        "the row behind the one that is asked for",
        TEMPLATE + "moves/gather.cu.j2",
        "(there ? index : 0) * ldx);",
        "(there ? index + 1 : 0) * ldx);",
        kernel("gather_16x4"),
    ),
    Mistake(
        "the largest sorted to the end",
        TEMPLATE + "include/sort.cuh.j2",
        "if ((a < b) == ((i & length) == 0)) {",
        "if ((a < b) == ((i & length) != 0)) {",
        kernel("topk_bf16_16"),
    ),
    Mistake(
        "weights of 4 bits scaled with another rounding",
        TEMPLATE + "nf4/dequantise.cu.j2",
        "w[q] = __fmul_rn(scale[t], __shfl_sync(~0u, code[0], indices[t] >> 4 * q, 16));",
        "w[q] = __fmul_ru(scale[t], __shfl_sync(~0u, code[0], indices[t] >> 4 * q, 16));",
        golden("nf4_f32_*"),
    ),
    Mistake(
        "lines that no golden has",
        TEMPLATE + "rows/scan.cu.j2",
        "        {{ C }} carry = {{ zero }};\n",
        "        {{ C }} carry = {{ zero }};\n"
        "{% if not spec.share %}\n        carry = 1;\n{% endif %}\n",
        TEMPLATES,
    ),
    Mistake(
        "an atomic addition",
        TEMPLATE + "rows/logsumexp.cu.j2",
        "    y[row] = result;",
        "    atomicAdd(reinterpret_cast<float*>(y) + row, result);",
        golden("lse_combine_f32_*"),
    ),
    Mistake(
        "states of a recurrence that are not there",
        TEMPLATE + "recurrence/tile.cuh.j2",
        "sum = j < count ? more : sum;",
        "sum = more;",
        tests("test_recurrence.py", "not_there"),
    ),
    Mistake(
        "gradients of a recurrence by the state after a token",
        TEMPLATE + "recurrence/selective_backward.cu.j2",
        "h[j] = before;",
        "(void)before;",
        kernel("selective_backward_f32_4x4"),
    ),
    Mistake(
        "a recurrence of a matrix that forgets to decay",
        TEMPLATE + "delta/forward.cu.j2",
        "__fmaf_rn(keys[i], d[c], __fmul_rn(a, s[i][c]))",
        "__fmaf_rn(keys[i], d[c], s[i][c])",
        kernel("delta_rule_bf16_128_32"),
    ),
    Mistake(
        "a triangular system that adds what it should take away",
        TEMPLATE + "triangular/solve.cu.j2",
        "(-a, x, acc)",
        "(a, x, acc)",
        kernel("triangular_f32"),
    ),
    Mistake(
        "gathered windows that a stage is told full before",
        TEMPLATE + "wgmma/gather.cuh.j2",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];",
        "mbarrier.arrive.shared::cta.b64 _, [%0];",
        kernel("conv_gather_nt_bf16_64x32"),
    ),
    Mistake(
        "filters that threads copy, each row of the tap before",
        TEMPLATE + "wgmma/gather.cuh.j2",
        "__shfl_sync(~0u, filter, (b_row + i) / 8)",
        "__shfl_sync(~0u, filter, (b_row + i) / 16)",
        kernel("conv_carried_nn_bf16_64x64"),
    ),
    Mistake(
        "windows that are loaded number by number, whose tap ends unseen",
        TEMPLATE + "wgmma/gather.cuh.j2",
        "if (e == 0 || c == 0) {",
        "if (e == 0) {",
        kernel("conv_loose_nn_bf16_64x64"),
    ),
    Mistake(
        "windows put together of vectors, whose tap ends unseen",
        TEMPLATE + "wgmma/gather.cuh.j2",
        "if (left >= 8 ||",
        "if (left >= 4 ||",
        tests("test_conv.py", "copied_with_zeros and bf16"),
    ),
    Mistake(
        "panels of windows whose rest is the next tap's",
        TEMPLATE + "wgmma/gemm.cu.j2",
        "column < columns ? min(channels - channel, 64u) : 0",
        "column < columns ? 64u : 0",
        kernel("conv_sum_tn_bf16_64x128"),
    ),
    Mistake(
        "the second phase of a gradient, written where the third is",
        TEMPLATE + "wgmma/gemm.cu.j2",
        "(at.phase % 2) * right_c + (at.phase / 2) * below_c",
        "(at.phase / 2) * right_c + (at.phase % 2) * below_c",
        kernel("conv_carried_nn_bf16_64x32"),
    ),
    Mistake(
        "depthwise windows of the next channel's filter",
        TEMPLATE + "conv/depthwise.cu.j2",
        "weight.x, total.x)",
        "weight.y, total.x)",
        kernel("depthwise_bf16"),
    ),
    Mistake(
        "prefix sums negated",
        TEMPLATE + "rows/scan.cu.j2",
        "if (begin + q < cols) to[at(begin + q)] = v.at[q];",
        "if (begin + q < cols) to[at(begin + q)] = v.at[q] ^ 0x8000;",
        kernel("scan_bf16_1x1"),
    ),
    Mistake(
        "attention that sees a key behind the query",
        TEMPLATE + "attention/places.cuh.j2",
        "causal ? (long long)at + 1 :",
        "causal ? (long long)at + 2 :",
        tests("test_attention.py", "test_features and causal"),
    ),
    Mistake(
        "a maximum of scores that is not rounded up",
        TEMPLATE + "attention/weights.cuh.j2",
        "return ceilf(__fmul_rn(m, factor));",
        "return rintf(__fmul_rn(m, factor));",
        tests("test_attention.py", "test_head_dimensions and f32"),
    ),
    Mistake(
        "values that are no numbers reach rows that do not see them",
        TEMPLATE + "attention/mma.cuh.j2",
        "return __any_sync(0xffffffffu, (found & INFINITE)",
        "return __all_sync(0xffffffffu, (found & INFINITE)",
        tests("test_attention.py", "not_seen_may_be_anything and float16"),
    ),
    Mistake(
        "splits of attention joined a block late on Hopper",
        TEMPLATE + "attention/hopper.cu.j2",
        "if (rare(block % (SPLIT / BLOCK) == 0 && block != own_first)) {",
        "if (rare(block % (SPLIT / BLOCK) == 1 && block != own_first)) {",
        tests("test_attention.py", "test_every_route and half"),
    ),
    Mistake(
        "values from the pages of the next block's keys",
        TEMPLATE + "attention/hopper.cu.j2",
        "next = page_of(block + 1);",
        "next = page_of(block + 2);",
        tests("test_attention.py", "test_pages_on_hopper and 256-64-64"),
    ),
    Mistake(
        "sums of weights brought to the maximum of another row",
        TEMPLATE + "attention/decode.cu.j2",
        "of_block = factors + min(sum_row, rows - 1) * BLOCKS + b;",
        "of_block = factors + min(sum_row + 1, rows - 1) * BLOCKS + b;",
        tests("test_attention.py", "test_features and causal"),
    ),
    Mistake(
        "a tile of few rows that is read before it has come",
        TEMPLATE + "attention/decode.cu.j2",
        "barrier_wait(full_at(stage), parity);",
        "barrier_wait(full_at(stage), parity ^ 1);",
        tests("test_attention.py", "test_features and causal and CTA"),
    ),
    Mistake(
        "weights of a cluster by the largest logits of the blocks before",
        TEMPLATE + "attention/cluster.cu.j2",
        "u < (unit / (BLOCK / KEYS) + 1) * (BLOCK / KEYS)",
        "u < unit / (BLOCK / KEYS) * (BLOCK / KEYS)",
        tests("test_attention.py", "test_features and causal and cluster"),
    ),
    Mistake(
        "a cluster whose last CTA is not told the weights",
        TEMPLATE + "attention/cluster.cu.j2",
        "for (unsigned to = 0; to < CTAS; ++to) {",
        "for (unsigned to = 0; to < CTAS - 1; ++to) {",
        tests("test_attention.py", "test_features and causal and cluster"),
    ),
    Mistake(
        "gradients that unseen rows reach, where these are no numbers",
        TEMPLATE + "attention/hopper_dkdv.cu.j2",
        "any_of_warpgroup(odd != odd,",
        "any_of_warpgroup(odd > 0.0f,",
        tests("test_attention_grad.py", "not_seen_on_hopper and bf16"),
    ),
    Mistake(
        "a tile of rows whose heads are read from another query",
        TEMPLATE + "attention/keys.cuh.j2",
        "make_uint2(block % own, block / own * QUERIES",
        "make_uint2(block / own, block % own * QUERIES",
        tests("test_attention_grad.py", "test_bits_on_hopper"),
    ),
    Mistake(
        "quotients of attention that nobody mends",
        TEMPLATE + "attention/weights.cuh.j2",
        "return __fmaf_rn(__fmaf_rn(-q, d.by, o), d.inverse, q);",
        "return q;",
        tests("test_attention.py", "test_head_dimensions and f32"),
    ),
    Mistake(
        "heads in parts of another number",
        "ptxgen/numerics/attention.py",
        "PART = 4",
        "PART = 8",
        ("-m", "ptxgen", "golden", "bits"),
    ),
    Mistake(
        "a split of attention of another length",
        "ptxgen/numerics/attention.py",
        "SPLIT = 1024",
        "SPLIT = 2048",
        ("-m", "ptxgen", "golden", "bits"),
    ),
    Mistake(
        "sums into rows that begin one contribution late",
        TEMPLATE + "moves/scatter.cu.j2",
        "if (length > 0) sum = lanes_sum(dy + mine, ldy, keys + first, length, 0);",
        "if (length > 1) sum = lanes_sum(dy + mine, ldy, keys + first + 1, length - 1, 0);",
        tests("test_indexed.py", "read_and_added"),
    ),
    Mistake(
        "chunks of f64 taken away",
        TEMPLATE + "f64/reduce.cu.j2",
        "if (next + b < chunks) v = __dadd_rn(v, ahead[b]);",
        "if (next + b < chunks) v = __dadd_rn(v, -ahead[b]);",
        kernel("f64_tn_f64_32x32x32_828dd7"),
    ),
    Mistake(
        "a bias of sums of NF4 taken away",
        TEMPLATE + "nf4/finish.cu.j2",
        "bias ? __fadd_rn(*at, bias[j]) : *at);",
        "bias ? __fsub_rn(*at, bias[j]) : *at);",
        golden("finish_f32_*"),
    ),
    Mistake(
        "maxima of segments in the place of sums",
        TEMPLATE + "wgmma/segments.cuh.j2",
        "total[to] = found[half].y;",
        "total[to] = found[half].x;",
        kernel("wgmma_segments_nn_bf16"),
    ),
    Mistake(
        "neighbours of a chain exchanged",
        TEMPLATE + "wgmma/chain.cu.j2",
        "half * 1024, u[0], u[1], begins);",
        "half * 1024, u[1], u[0], begins);",
        kernel("wgmma_chain_tn_bf16_64x64x64_bf16"),
    ),
    Mistake(
        "packed products with half of each result",
        TEMPLATE + "int4/packed.cu.j2",
        "load_shared(x[4], x[5], x[6], x[7], from + 16);",
        "load_shared(x[4], x[5], x[6], x[7], from);",
        tests("test_packed.py", "test_bits and 96"),
    ),
    Mistake(
        "two lanes that store one row",
        TEMPLATE + "int4/packed.cu.j2",
        "lane & 4 ? 0x3276 : 0x5410",
        "lane & 4 ? 0x5410 : 0x5410",
        tests("test_packed.py", "test_bits and 96"),
    ),
    Mistake(
        "the copy engine off 16 bytes",
        SPEC + "packed.py",
        "return all_of((ALIGN_B >= 16, int4.SUM_MAX // self.largest >= K, *bounds))",
        "return all_of((ALIGN_B >= 8, int4.SUM_MAX // self.largest >= K, *bounds))",
        tests("test_packed.py", "off_16_bytes"),
    ),
    Mistake(
        "the picked digits of keys one too few",
        TEMPLATE + "select/topk.cu.j2",
        "if (to < k) found[to] = (unsigned long long)key << 32 | ~(begin + q);",
        "if (to < k - 1) found[to] = (unsigned long long)key << 32 | ~(begin + q);",
        kernel("topk_bf16_16"),
    ),
    Mistake(
        "sums of formulas rounded down",
        SPEC + "formula.py",
        '"add": "__{l}add_rn({0}, {1})"',
        '"add": "__{l}add_rd({0}, {1})"',
        tests("test_rowwise.py", "oracle and rms_norm"),
    ),
    Mistake(
        "floats cut to integers that are rounded",
        SPEC + "formula.py",
        '("f32", "i32"): "({0} == {0} ? __float2int_rz({0}) : 0)"',
        '("f32", "i32"): "({0} == {0} ? __float2int_rn({0}) : 0)"',
        tests("test_pointwise.py", "casts_to"),
    ),
    Mistake(
        "a bias of another column",
        TEMPLATE + "include/epilogue.cuh.j2",
        "        if (bias) v[q] = __fadd_rn(v[q], ptxgen_bias(bias, j + q, flags));\n"
        "        if (flags & PTXGEN_ACCUMULATE)",
        "        if (bias) v[q] = __fadd_rn(v[q], ptxgen_bias(bias, j, flags));\n"
        "        if (flags & PTXGEN_ACCUMULATE)",
        kernel("mma_nn_bf16"),
    ),
    Mistake(
        "products of NF4 weights rounded up",
        TEMPLATE + "nf4/gemm.ptx.j2",
        "fma.rn.{{ T }} %acc{{ i }}_{{ j }}",
        "fma.rp.{{ T }} %acc{{ i }}_{{ j }}",
        kernel("nf4_nn_f32_1x128"),
    ),
    Mistake(
        "gradients of logits without their share",
        TEMPLATE + "rows/logits.cu.j2",
        "row.dy = dy ? dy[r] : 1;",
        "row.dy = dy ? dy[0] : 1;",
        kernel("logits_gradient_bf16"),
    ),
    Mistake(
        "sums down rows joined by lanes 16 apart",
        TEMPLATE + "rows/lanes.cu.j2",
        "for (unsigned step = 1; step < LANES; step *= 2)",
        "for (unsigned step = LANES / 2; step > 0; step /= 2)",
        golden("rows_rms_norm_gradients_bf16_lanes_*"),
    ),
    Mistake(
        "operands copied from one element too far",
        TEMPLATE + "realign/copy.cu.j2",
        "w[q] = skip & 4 ? w[q + 1] : w[q];",
        "w[q] = skip & 4 ? w[q] : w[q + 1];",
        tests("test_realign.py", "test_copies"),
    ),
    Mistake(
        "a bias of another column, on Hopper",
        TEMPLATE + "wgmma/gemm.cu.j2",
        "column < n ? ptxgen_bias(bias, column, flags) : 0.0f;",
        "column < n ? ptxgen_bias(bias, column / 2, flags) : 0.0f;",
        tests("test_interp_kernels.py", "test_stores and wgmma_nn_bf16_64x256x64"),
    ),
    Mistake(
        "the CPU device's fma in f64 rounded twice",
        "ptxgen/interp/values/floats.py",
        "        exact += rest[1]\n",
        "        exact = Fraction(float(exact)) + rest[1]\n",
        tests("test_interp_floats.py", "fma"),
    ),
    Mistake(
        "the CPU device asks a warpgroup's first and last thread alone what they know",
        "ptxgen/interp/memory/proxy.py",
        "        return groups[:, border[1:] | border[:-1]]\n",
        "        return groups[:, [0, -1]]\n",
        tests("test_interp_async.py", "wrong_uses_of_wgmma"),
    ),
    # -- which bits are right -------------------------------------------------------------
    Mistake(
        "rows cut one k later",
        NUMBERS + "contract.py",
        "select((N <= 2048) & (K >= 2048), _granular(ceil_div(K, 4)), K)",
        "select((N <= 2048) & (K >= 2049), _granular(ceil_div(K, 4)), K)",
        BITS,
    ),
    Mistake(
        "rows of many columns cut, too",
        NUMBERS + "contract.py",
        "(N <= 4096) & (K >= select(N <= 512, 1024, 2048))",
        "(N <= 4097) & (K >= select(N <= 512, 1024, 2048))",
        BITS,
    ),
    Mistake(
        "chunks of tensor cores rounded up to less",
        NUMBERS + "contract.py",
        "_granular(minimum(ceil_div(K, 8), 2048), 128)",
        "_granular(minimum(ceil_div(K, 8), 2048), 64)",
        BITS,
    ),
    Mistake(
        "batches cut into more chunks",
        NUMBERS + "contract.py",
        "minimum(maximum(const(1 << 24) // (M * N), 1), 128)",
        "minimum(maximum(const(1 << 24) // (M * N), 1), 127)",
        BITS,
    ),
    Mistake(
        "powers of two whose square has a column more",
        "ptxgen/oracle/ex2.py",
        "if worth >= 0:",
        "if worth >= -1:",
        tests("test_conformance.py", "ex2"),
    ),
    Mistake(
        "weights of attention relative to a power of two",
        TEMPLATE + "attention/weights.cuh.j2",
        "{ return __fmul_rn(m, factor); }",
        "{ return ceilf(__fmul_rn(m, factor)); }",
        tests("test_attention.py", "test_features and causal"),
    ),
    Mistake(
        "a tensor core that keeps a bit more",
        NUMBERS + "contract.py",
        '"sm_89": TensorCore(8, 24, -126, _MMA_SIM, measured=False)',
        '"sm_89": TensorCore(8, 25, -126, _MMA_SIM, measured=False)',
        BITS,
    ),
    Mistake(
        "leaves of half the length",
        NUMBERS + "rowwise.py",
        "LEAF = 1024",
        "LEAF = 512",
        BITS,
    ),
    Mistake(
        "the share of the larger part of a row",
        NUMBERS + "scan.py",
        "later = m < other",
        "later = m > other",
        BITS,
    ),
    Mistake(
        "prefix sums carried twice as often",
        NUMBERS + "scan.py",
        "GROUP = 8\n",
        "GROUP = 4\n",
        BITS,
    ),
    Mistake(
        "a coefficient's last bit",
        NUMBERS + "activation.py",
        '_hex("0x1.55548ep-3")',
        '_hex("0x1.555490p-3")',
        BITS,
    ),
    Mistake(
        "a code of NF4",
        NUMBERS + "nf4.py",
        "0.07958029955625534,",
        "0.07958030700683594,",
        BITS,
    ),
    Mistake(
        "an oracle that adds leaves by lanes 16 apart",
        "ptxgen/oracle/rowwise.py",
        "lanes = operate(lanes[..., 0::2], lanes[..., 1::2])",
        "lanes = operate(*np.split(lanes, 2, -1))",
        BITS,
    ),
    Mistake(
        "an oracle whose products are rounded twice",
        "ptxgen/oracle/f32.py",
        "rounder.add(product, flat_c[block].astype(np.float64), out[block])",
        "out[block] = product.astype(np.float32) + flat_c[block]",
        BITS,
    ),
    Mistake(
        "indices added in the order of rows, not of positions",
        "ptxgen/oracle/moves.py",
        'order = np.argsort(indices, kind="stable")',
        'order = np.argsort(indices[::-1], kind="stable")[::-1]',
        BITS,
    ),
    Mistake(
        "a fused value that is not rounded as it was stored",
        "ptxgen/graph/fuse.py",
        "else cast(node, short)",
        "else node",
        PASSES,
    ),
    Mistake(
        "a fused step that drops what others read",
        "ptxgen/graph/fuse.py",
        "needed = {m for m in first.region.written if m in outputs or readers.get(m, set()) - of}",
        "needed = first.region.written & outputs",
        PASSES,
    ),
    Mistake(
        "a view's digits that carry",
        "ptxgen/graph/fuse.py",
        "if any(a >= n for a, n in zip(last, of.shape, strict=True)):",
        "if any(a > n for a, n in zip(last, of.shape, strict=True)):",
        PASSES,
    ),
    Mistake(
        "what is broadcast computed again however long that takes",
        "ptxgen/graph/worth.py",
        "return microseconds([after]) <= microseconds(before) - EMPTY * (len(before) - 1)",
        "return True",
        PASSES,
    ),
    Mistake(
        "a copy that is left out although what it is of changes",
        "ptxgen/graph/passes.py",
        "still = at.get(source, -1) < number and not source.written",
        "still = True",
        PASSES,
    ),
    Mistake(
        "an elementwise step that writes over what is read behind it",
        "ptxgen/graph/inplace.py",
        "if over and last[memory] == number and",
        "if over and",
        PASSES,
    ),
    Mistake(
        "a weight a column taken for one a row",
        "ptxgen/graph/rows.py",
        "if fact(x) != fact(own) or node.data.kind != level:",
        "if fact(x) != fact(own):",
        PASSES,
    ),
    Mistake(
        "a sum that its norm does not round as it was stored",
        "ptxgen/graph/rows.py",
        "places[node] = as_stored(value, own.dtype)",
        "places[node] = value",
        PASSES,
    ),
    Mistake(
        "a step over rows that drops what others read",
        "ptxgen/graph/rows.py",
        "kept = [(n, b) for n, b in before.results if b.memory in needed]",
        "kept = [(n, b) for n, b in before.results if b.memory in needed and n in reads]",
        PASSES,
    ),
    Mistake(
        "a formula of a product that is not rounded first",
        TEMPLATE + "include/ending.cuh.j2",
        """if e.dtype == "f32" else "ptxgen_round_%s(v[q])" % e.dtype }}""",
        """}}""",
        EPILOGUES,
    ),
    Mistake(
        "an epilogue that does not round between two steps",
        "ptxgen/graph/epilogues.py",
        "places[node] = as_stored(value, target.dtype)",
        "places[node] = value",
        EPILOGUES,
    ),
    Mistake(
        "an epilogue that drops a result that others read",
        "ptxgen/graph/epilogues.py",
        "kept = ((n, b) for n, b in first.results if b.memory in needed)",
        "kept = ((n, b) for n, b in first.results if b.memory in needed and n in reads)",
        EPILOGUES,
    ),
    Mistake(
        "an epilogue of a result that is read turned",
        "ptxgen/graph/epilogues.py",
        "if as_written is None or fact(as_written) != fact(seen):",
        "if as_written is None:",
        EPILOGUES,
    ),
    Mistake(
        "an epilogue that writes where other tiles still read",
        "ptxgen/graph/epilogues.py",
        "if (first.read | (to.read - first.written)) & (first.written | to.written):",
        "if first.read & first.written:",
        EPILOGUES,
    ),
    Mistake(
        "vectors of what lies beside a product off their alignment",
        TEMPLATE + "include/ending.cuh.j2",
        "{%- for a in e.arrays if a.step",
        "{%- for a in e.writes if a.step",
        tests("test_epilogues.py", "offset"),
    ),
    Mistake(
        "siblings of which one writes over what the other reads",
        "ptxgen/graph/fuse.py",
        "if second.written & first.read:",
        "if second.written & first.written:",
        PASSES,
    ),
    Mistake(
        "a part that is read when what it is of has changed",
        "ptxgen/graph/parts.py",
        "if any(first.read & {b.memory for b in s.writes()} for s in behind):",
        "if first.read & first.written:",
        PASSES,
    ),
    Mistake(
        "keys that are read where they were, when they have changed",
        "ptxgen/graph/heads.py",
        "for m, pair in copies.items() if pair[0].memory not in written",
        "for m, pair in copies.items()",
        PASSES,
    ),
    Mistake(
        "an argument that is written before all have read it",
        "ptxgen/graph/inplace.py",
        "if i != at and met and (whole or i != change or not _each(step, memory, target, shift)):",
        "if i != at and met and whole:",
        PASSES,
    ),
    Mistake(
        "a saved kernel that was altered is taken",
        "ptxgen/program/saved.py",
        'if text["parts"].get(name) != digests.get(name):',
        'if name not in text["parts"] or name not in digests:',
        SAVED,
    ),
    Mistake(
        "a saved program of another version of a contract is taken",
        "ptxgen/program/saved.py",
        "if here.get(own) != int(version):",
        "if own not in here:",
        SAVED,
    ),
    Mistake(
        "a graph that writes another argument is replayed",
        "ptxgen/program/replay.py",
        "found = self._runs.get(places)",
        "found = next(iter(self._runs.values()), None)",
        tests("test_written.py", "on_the_device_is_written_there"),
    ),
    Mistake(
        "a row is put where a later one belongs",
        TEMPLATE + "moves/order.cu.j2",
        "if (row < 0 || row >= rows || (k + 1 < count && keys[k + 1] == row)) return;",
        "if (row < 0 || row >= rows || (k > 0 && keys[k - 1] == row)) return;",
        kernel("order_put"),
    ),
    Mistake(
        "offsets that do not ascend are taken as they are",
        TEMPLATE + "include/groups.cuh.j2",
        """            const unsigned next = max(end, end_of(g));
            sum += (next - end + {{ rows }} - 1) / {{ rows }};
            ends[g]""",
        """            const unsigned next = end_of(g);
            sum += (next - end + {{ rows }} - 1) / {{ rows }};
            ends[g]""",
        kernel("grouped_simt_nn"),
    ),
    Mistake(
        "rows of no group are multiplied by the last group's weight",
        TEMPLATE + "wgmma/ring.cuh.j2",
        "make_uint2(at.group == groups, 0), matrix_b = make_uint2(at.group, 0);",
        "make_uint2(0, 0), matrix_b = make_uint2(at.group - (at.group == groups), 0);",
        kernel("grouped_wgmma_nn_bf16_64x128x128"),
    ),
    Mistake(
        "a group's last stage is multiplied with the next group's rows",
        TEMPLATE + "wgmma/ring.cuh.j2",
        "if (stop - k0 < BK) cut_stage(slot, stop - k0);",
        "if (stop - k0 < 16) cut_stage(slot, stop - k0);",
        kernel("grouped_wgmma_tn_bf16"),
    ),
    Mistake(
        "zeros of a cut stage that the tensor cores may not see",
        TEMPLATE + "wgmma/ring.cuh.j2",
        """            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync 1""",
        """            asm volatile("bar.sync 1""",
        kernel("grouped_wgmma_tn_bf16"),
    ),
    Mistake(
        "widened numbers of an NF4 weight that the tensor cores may not see",
        TEMPLATE + "wgmma/gemm.cu.j2",
        "stored=spec.gathered or widens)",
        "stored=spec.gathered)",
        kernel("nf4_wgmma_nt_bf16_64x64x128"),
    ),
    Mistake(
        "an image of one row has the filter's first taps, whichever reach it",
        "ptxgen/ops/windows.py",
        "w = b.narrow(w, i + 1, way.tap,",
        "w = b.narrow(w, i + 1, 0,",
        tests("test_conv.py", "images_of_one_row"),
    ),
    Mistake(
        "the chain of a convolution's filters is cut within a step of the tensor cores",
        "ptxgen/ops/conv.py",
        "unit = 16 // gcd(each, 16)",
        "unit = 1",
        tests("test_conv.py", "depend_on_the_pieces"),
    ),
    Mistake(
        "depthwise filters of 16 bits are products on tensor cores",
        "ptxgen/ops/conv.py",
        'return "simt" if tier == "auto" and groups > 1 and each == (1, 1) else tier',
        "return tier",
        tests("test_conv.py", "depthwise_filters_are_chains"),
    ),
    Mistake(
        "equal integers of two sorted runs change places",
        TEMPLATE + "moves/order.cu.j2",
        "if (runs[middle] < key || (run < mine && runs[middle] == key))",
        "if (runs[middle] < key)",
        tests("test_experts.py", "vectors_of_integers"),
    ),
    # -- streams --------------------------------------------------------------------------
    Mistake(
        "a step does not wait for who reads what it writes over",
        "ptxgen/program/depends.py",
        "awaited.update(*(readers[part] for part, written in parts if written))",
        "pass",
        tests("test_streams.py", "in_every_order"),
    ),
    Mistake(
        "a step does not wait for who wrote what it reads",
        "ptxgen/program/depends.py",
        "awaited = {writer[part] for part, _ in parts}",
        "awaited = {writer[part] for part, written in parts if written}",
        tests("test_streams.py", "in_every_order"),
    ),
    Mistake(
        "scratch memory of kernels orders no steps",
        "ptxgen/program/execute.py",
        "touched.append(Touch(bottom, at, at + size, written=True))",
        "pass",
        tests("test_streams.py", "scratch_memory_is_touched"),
    ),
    Mistake(
        "a step of another stream is not waited for",
        "ptxgen/program/streams.py",
        "            device.wait(handle, events[each])",
        "            pass",
        tests("test_streams.py", "bits_on_streams"),
    ),
    Mistake(
        "a stream's last step is not waited for in the end",
        "ptxgen/program/streams.py",
        "    for each in of.ends:",
        "    for each in of.ends[:0]:",
        tests("test_streams.py", "bits_on_streams"),
    ),
    Mistake(
        "a room that asks for an operation by name",
        "ptxgen/spec/effort.py",
        "from __future__ import annotations\n",
        'from __future__ import annotations\n\nKNOWN = "softmax" == __name__\n',
        tests("test_add_an_operation.py", "by_name"),
    ),
)
