"""The generated dispatch functions by the table's key and the architecture.

MEASURED has those of profiles, by the GPU's name and SMs before all that.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Dispatch
from ptxgen.dispatch.generated import (
    nn_rows_bf16_simt,
    nn_rows_bf16_tc,
    nn_rows_bf16_tc_h200_132,
    nn_rows_f16_simt,
    nn_rows_f16_tc,
    nn_rows_f16_tc_h200_132,
    nn_rows_f32_simt,
    nt_rows_bf16_simt,
    nt_rows_bf16_tc,
    nt_rows_bf16_tc_h200_132,
    nt_rows_f16_simt,
    nt_rows_f16_tc,
    nt_rows_f16_tc_h200_132,
    nt_rows_f32_simt,
    tn_batch_bf16_simt,
    tn_batch_bf16_tc,
    tn_batch_bf16_tc_h200_132,
    tn_batch_f16_simt,
    tn_batch_f16_tc,
    tn_batch_f16_tc_h200_132,
    tn_batch_f32_simt,
    tn_rows_bf16_simt,
    tn_rows_bf16_tc,
    tn_rows_bf16_tc_h200_132,
    tn_rows_f16_simt,
    tn_rows_f16_tc,
    tn_rows_f16_tc_h200_132,
    tn_rows_f32_simt,
    tt_rows_bf16_simt,
    tt_rows_bf16_tc,
    tt_rows_bf16_tc_h200_132,
    tt_rows_f16_simt,
    tt_rows_f16_tc,
    tt_rows_f16_tc_h200_132,
    tt_rows_f32_simt,
)

TABLES: dict[tuple[str, ...], dict[str, Dispatch]] = {
    ("NN", "rows", "bf16", "simt"): nn_rows_bf16_simt.BY_ARCH,
    ("NN", "rows", "bf16", "tc"): nn_rows_bf16_tc.BY_ARCH,
    ("NN", "rows", "f16", "simt"): nn_rows_f16_simt.BY_ARCH,
    ("NN", "rows", "f16", "tc"): nn_rows_f16_tc.BY_ARCH,
    ("NN", "rows", "f32", "simt"): nn_rows_f32_simt.BY_ARCH,
    ("NT", "rows", "bf16", "simt"): nt_rows_bf16_simt.BY_ARCH,
    ("NT", "rows", "bf16", "tc"): nt_rows_bf16_tc.BY_ARCH,
    ("NT", "rows", "f16", "simt"): nt_rows_f16_simt.BY_ARCH,
    ("NT", "rows", "f16", "tc"): nt_rows_f16_tc.BY_ARCH,
    ("NT", "rows", "f32", "simt"): nt_rows_f32_simt.BY_ARCH,
    ("TN", "batch", "bf16", "simt"): tn_batch_bf16_simt.BY_ARCH,
    ("TN", "batch", "bf16", "tc"): tn_batch_bf16_tc.BY_ARCH,
    ("TN", "batch", "f16", "simt"): tn_batch_f16_simt.BY_ARCH,
    ("TN", "batch", "f16", "tc"): tn_batch_f16_tc.BY_ARCH,
    ("TN", "batch", "f32", "simt"): tn_batch_f32_simt.BY_ARCH,
    ("TN", "rows", "bf16", "simt"): tn_rows_bf16_simt.BY_ARCH,
    ("TN", "rows", "bf16", "tc"): tn_rows_bf16_tc.BY_ARCH,
    ("TN", "rows", "f16", "simt"): tn_rows_f16_simt.BY_ARCH,
    ("TN", "rows", "f16", "tc"): tn_rows_f16_tc.BY_ARCH,
    ("TN", "rows", "f32", "simt"): tn_rows_f32_simt.BY_ARCH,
    ("TT", "rows", "bf16", "simt"): tt_rows_bf16_simt.BY_ARCH,
    ("TT", "rows", "bf16", "tc"): tt_rows_bf16_tc.BY_ARCH,
    ("TT", "rows", "f16", "simt"): tt_rows_f16_simt.BY_ARCH,
    ("TT", "rows", "f16", "tc"): tt_rows_f16_tc.BY_ARCH,
    ("TT", "rows", "f32", "simt"): tt_rows_f32_simt.BY_ARCH,
}

MEASURED: dict[tuple[str, int], dict[tuple[str, ...], dict[str, Dispatch]]] = {
    ("NVIDIA H200", 132): {
        ("NN", "rows", "bf16", "tc"): nn_rows_bf16_tc_h200_132.BY_ARCH,
        ("NN", "rows", "f16", "tc"): nn_rows_f16_tc_h200_132.BY_ARCH,
        ("NT", "rows", "bf16", "tc"): nt_rows_bf16_tc_h200_132.BY_ARCH,
        ("NT", "rows", "f16", "tc"): nt_rows_f16_tc_h200_132.BY_ARCH,
        ("TN", "batch", "bf16", "tc"): tn_batch_bf16_tc_h200_132.BY_ARCH,
        ("TN", "batch", "f16", "tc"): tn_batch_f16_tc_h200_132.BY_ARCH,
        ("TN", "rows", "bf16", "tc"): tn_rows_bf16_tc_h200_132.BY_ARCH,
        ("TN", "rows", "f16", "tc"): tn_rows_f16_tc_h200_132.BY_ARCH,
        ("TT", "rows", "bf16", "tc"): tt_rows_bf16_tc_h200_132.BY_ARCH,
        ("TT", "rows", "f16", "tc"): tt_rows_f16_tc_h200_132.BY_ARCH,
    },
}
