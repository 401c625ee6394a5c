# As `ptxgen generate` writes it.
from ptxgen.ops.pointwise import Pointwise
from ptxgen.types import ArrayT
from typing import Any, overload

class _Elementwise(Pointwise):
    @overload
    def __call__(self, first: ArrayT, /, *args: Any, **named: Any) -> ArrayT: ...
    @overload
    def __call__(self, *args: Any, **named: Any) -> Any: ...

abs: _Elementwise
add: _Elementwise
angle: _Elementwise
atan: _Elementwise
bitwise_and: _Elementwise
bitwise_not: _Elementwise
bitwise_or: _Elementwise
bitwise_xor: _Elementwise
def cast(x: ArrayT, dtype: Any, *, out: Any = None, stream: Any = None) -> ArrayT: ...
ceil: _Elementwise
clamp: _Elementwise
complex: _Elementwise
conj: _Elementwise
copy: _Elementwise
cos: _Elementwise
div: _Elementwise
eq: _Elementwise
erf: _Elementwise
exp: _Elementwise
exp2: _Elementwise
expm1: _Elementwise
floor: _Elementwise
fma: _Elementwise
ge: _Elementwise
geglu: _Elementwise
gelu: _Elementwise
gelu_tanh: _Elementwise
gt: _Elementwise
imag: _Elementwise
isfinite: _Elementwise
isinf: _Elementwise
isnan: _Elementwise
le: _Elementwise
log: _Elementwise
log1p: _Elementwise
log2: _Elementwise
lt: _Elementwise
maximum: _Elementwise
minimum: _Elementwise
mul: _Elementwise
ne: _Elementwise
neg: _Elementwise
polar: _Elementwise
pow: _Elementwise
real: _Elementwise
reglu: _Elementwise
relu: _Elementwise
round: _Elementwise
rsqrt: _Elementwise
sigmoid: _Elementwise
sign: _Elementwise
silu: _Elementwise
sin: _Elementwise
softplus: _Elementwise
sqrt: _Elementwise
sub: _Elementwise
swiglu: _Elementwise
tan: _Elementwise
tanh: _Elementwise
trunc: _Elementwise
where: _Elementwise
