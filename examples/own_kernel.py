"""A kernel of your own: a spec, its CUDA source, its PTX, and what it costs.

python examples/own_kernel.py
"""

from __future__ import annotations

import sys
from dataclasses import replace

from ptxgen.build.compile import compile_cubin, compile_ptx
from ptxgen.build.render import render
from ptxgen.errors import SpecError
from ptxgen.spec.simt import SimtSpec


def main() -> int:
    """Defines, renders and compiles a kernel; needs no GPU."""
    # C = A B, A [M, K] and B [K, N]: 64 x 64 outputs a CTA, 8 x 4 a thread, two-stage pipeline.
    spec = SimtSpec(
        layout="NN",
        bm=64,
        bn=64,
        bk=16,
        tm=8,
        tn=4,
        lanes_m=4,
        warps_m=2,
        warps_n=2,
        stages=2,
        copy_a="transpose",
        copy_b="vector",
    )
    print(f"name            {spec.name}")
    print(f"threads         {spec.threads}")
    print(f"shared memory   {spec.shared_bytes} bytes")
    print(f"grid            {spec.grid}")
    print(f"correct where   {spec.requires}")

    print("\nAn illegal spec cannot be made, and says which sum does not work out:")
    try:
        replace(spec, tm=16)
    except SpecError as error:
        print(f"  {error}")

    source = render(spec)
    print(f"\nThe source has {len(source.splitlines())} lines and begins:")
    for line in source.splitlines()[:12]:
        print(f"  {line}")

    ptx = compile_ptx(source, name=spec.name).text
    fmas = sum(line.lstrip().startswith("fma.rn.f32") for line in ptx.splitlines())
    print(f"\nIts PTX has {len(ptx.splitlines())} lines, {fmas} of them fma.rn.f32.")

    for arch in ("sm_80", "sm_90a"):
        resources = compile_cubin(source, name=spec.name, arch=arch).resources
        print(f"{arch:7} {resources}")

    print("\nTo let the dispatcher use it, add a Route to ptxgen/tiles/simt.py; see")
    print("docs/how-to/add-a-kernel.md. `ptxgen bench kernels linear kn MxKxN` then times it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
