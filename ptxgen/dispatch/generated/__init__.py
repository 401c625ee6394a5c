"""The generated dispatch functions by layout, plan, dtype, tier and architecture.

Generated from ptxgen.tiles.ROUTES; do not edit. Regenerate: ptxgen generate
"""

from ptxgen.dispatch.choice import Dispatch
from ptxgen.dispatch.generated import (
    nn_rows_f32_simt,
    nt_rows_f32_simt,
    tn_batch_f32_simt,
    tn_rows_f32_simt,
    tt_rows_f32_simt,
)

TABLES: dict[tuple[str, str, str, str], dict[str, Dispatch]] = {
    ("NN", "rows", "f32", "simt"): nn_rows_f32_simt.BY_ARCH,
    ("NT", "rows", "f32", "simt"): nt_rows_f32_simt.BY_ARCH,
    ("TN", "batch", "f32", "simt"): tn_batch_f32_simt.BY_ARCH,
    ("TN", "rows", "f32", "simt"): tn_rows_f32_simt.BY_ARCH,
    ("TT", "rows", "f32", "simt"): tt_rows_f32_simt.BY_ARCH,
}
