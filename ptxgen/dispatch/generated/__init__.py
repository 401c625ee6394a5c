"""The modules of generated dispatch functions, by the table's key.

A module is imported when its table is first used.

Generated from ptxgen.tiles.TABLES; do not edit. Regenerate: ptxgen generate
"""

TABLES: dict[tuple[str, ...], str] = {
    ("columns",): "columns",
    ("gather",): "gather",
    ("int4", "rcr", "s4"): "int4_rcr_s4",
    ("int4", "rcr", "u4"): "int4_rcr_u4",
    ("int4", "rrr", "s4"): "int4_rrr_s4",
    ("int4", "rrr", "u4"): "int4_rrr_u4",
    ("logsumexp",): "logsumexp",
    ("nf4", "NN", "rows", "f32", "f64"): "nf4_nn_rows_f32_f64",
    ("nf4", "NN", "rows", "f32", "simt"): "nf4_nn_rows_f32_simt",
    ("nf4", "NN", "rows", "half", "tc"): "nf4_nn_rows_half_tc",
    ("nf4", "NT", "rows", "f32", "f64"): "nf4_nt_rows_f32_f64",
    ("nf4", "NT", "rows", "f32", "simt"): "nf4_nt_rows_f32_simt",
    ("nf4", "NT", "rows", "half", "tc"): "nf4_nt_rows_half_tc",
    ("NN", "rows", "f32", "simt"): "nn_rows_f32_simt",
    ("NN", "rows", "f64", "simt"): "nn_rows_f64_simt",
    ("NN", "rows", "half", "simt"): "nn_rows_half_simt",
    ("NN", "rows", "half", "tc"): "nn_rows_half_tc",
    ("NT", "rows", "f32", "simt"): "nt_rows_f32_simt",
    ("NT", "rows", "f64", "simt"): "nt_rows_f64_simt",
    ("NT", "rows", "half", "simt"): "nt_rows_half_simt",
    ("NT", "rows", "half", "tc"): "nt_rows_half_tc",
    ("pointwise",): "pointwise",
    ("rows",): "rows",
    ("sample",): "sample",
    ("scan",): "scan",
    ("scatter",): "scatter",
    ("scatter", "old"): "scatter_old",
    ("TN", "batch", "f32", "simt"): "tn_batch_f32_simt",
    ("TN", "batch", "f64", "simt"): "tn_batch_f64_simt",
    ("TN", "batch", "half", "simt"): "tn_batch_half_simt",
    ("TN", "batch", "half", "tc"): "tn_batch_half_tc",
    ("TN", "rows", "f32", "simt"): "tn_rows_f32_simt",
    ("TN", "rows", "f64", "simt"): "tn_rows_f64_simt",
    ("TN", "rows", "half", "simt"): "tn_rows_half_simt",
    ("TN", "rows", "half", "tc"): "tn_rows_half_tc",
    ("topk",): "topk",
    ("TT", "rows", "f32", "simt"): "tt_rows_f32_simt",
    ("TT", "rows", "f64", "simt"): "tt_rows_f64_simt",
    ("TT", "rows", "half", "simt"): "tt_rows_half_simt",
    ("TT", "rows", "half", "tc"): "tt_rows_half_tc",
}
