"""The generated dispatch functions by the table's key and the architecture.

MEASURED has those of profiles, by the GPU's name and SMs before all that.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Dispatch
from ptxgen.dispatch.generated import (
    logsumexp,
    nn_rows_f32_simt,
    nn_rows_f64_simt,
    nn_rows_half_simt,
    nn_rows_half_tc,
    nn_rows_half_tc_h200_132,
    nt_rows_f32_simt,
    nt_rows_f64_simt,
    nt_rows_half_simt,
    nt_rows_half_tc,
    nt_rows_half_tc_h200_132,
    tn_batch_f32_simt,
    tn_batch_f64_simt,
    tn_batch_half_simt,
    tn_batch_half_tc,
    tn_batch_half_tc_h200_132,
    tn_rows_f32_simt,
    tn_rows_f64_simt,
    tn_rows_half_simt,
    tn_rows_half_tc,
    tn_rows_half_tc_h200_132,
    tt_rows_f32_simt,
    tt_rows_f64_simt,
    tt_rows_half_simt,
    tt_rows_half_tc,
    tt_rows_half_tc_h200_132,
)

TABLES: dict[tuple[str, ...], dict[str, Dispatch]] = {
    ("logsumexp",): logsumexp.BY_ARCH,
    ("NN", "rows", "f32", "simt"): nn_rows_f32_simt.BY_ARCH,
    ("NN", "rows", "f64", "simt"): nn_rows_f64_simt.BY_ARCH,
    ("NN", "rows", "half", "simt"): nn_rows_half_simt.BY_ARCH,
    ("NN", "rows", "half", "tc"): nn_rows_half_tc.BY_ARCH,
    ("NT", "rows", "f32", "simt"): nt_rows_f32_simt.BY_ARCH,
    ("NT", "rows", "f64", "simt"): nt_rows_f64_simt.BY_ARCH,
    ("NT", "rows", "half", "simt"): nt_rows_half_simt.BY_ARCH,
    ("NT", "rows", "half", "tc"): nt_rows_half_tc.BY_ARCH,
    ("TN", "batch", "f32", "simt"): tn_batch_f32_simt.BY_ARCH,
    ("TN", "batch", "f64", "simt"): tn_batch_f64_simt.BY_ARCH,
    ("TN", "batch", "half", "simt"): tn_batch_half_simt.BY_ARCH,
    ("TN", "batch", "half", "tc"): tn_batch_half_tc.BY_ARCH,
    ("TN", "rows", "f32", "simt"): tn_rows_f32_simt.BY_ARCH,
    ("TN", "rows", "f64", "simt"): tn_rows_f64_simt.BY_ARCH,
    ("TN", "rows", "half", "simt"): tn_rows_half_simt.BY_ARCH,
    ("TN", "rows", "half", "tc"): tn_rows_half_tc.BY_ARCH,
    ("TT", "rows", "f32", "simt"): tt_rows_f32_simt.BY_ARCH,
    ("TT", "rows", "f64", "simt"): tt_rows_f64_simt.BY_ARCH,
    ("TT", "rows", "half", "simt"): tt_rows_half_simt.BY_ARCH,
    ("TT", "rows", "half", "tc"): tt_rows_half_tc.BY_ARCH,
}

MEASURED: dict[tuple[str, int], dict[tuple[str, ...], dict[str, Dispatch]]] = {
    ("NVIDIA H200", 132): {
        ("NN", "rows", "half", "tc"): nn_rows_half_tc_h200_132.BY_ARCH,
        ("NT", "rows", "half", "tc"): nt_rows_half_tc_h200_132.BY_ARCH,
        ("TN", "batch", "half", "tc"): tn_batch_half_tc_h200_132.BY_ARCH,
        ("TN", "rows", "half", "tc"): tn_rows_half_tc_h200_132.BY_ARCH,
        ("TT", "rows", "half", "tc"): tt_rows_half_tc_h200_132.BY_ARCH,
    },
}
