package opgen.types.family;

import opgen.Tensor;

/** Any tensor of a known type. */
public interface TType extends Tensor {
  /** The type. */
  Class<? extends TType> type();
}
