"""Lowering: the mathematics of an `OpSpec` as loop IR, generic in sizes and attributes.

lower(module, op, Variant(types={"T": "float32"}, values={"data_format": "NHWC"})) -> Lowered
"""

from opgen.lower.lowering import Lowered, lower
from opgen.lower.variant import Variant, variant_of, variants
from opgen.spec.model.visit import structural_attrs

__all__ = ["Lowered", "Variant", "lower", "structural_attrs", "variant_of", "variants"]
