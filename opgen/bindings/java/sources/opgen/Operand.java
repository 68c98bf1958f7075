package opgen;

import opgen.ndarray.Shape;
import opgen.ndarray.Shaped;
import opgen.op.Op;
import opgen.types.family.TType;

/**
 * What an operation reads: a result of another.
 *
 * @param <T> the type of the tensor
 */
public interface Operand<T extends TType> extends Op, Shaped {
  /** The result. */
  Output<T> asOutput();

  /** The tensor; throws if it is part of a graph, which a session must run first. */
  default T asTensor() {
    return asOutput().asTensor();
  }

  /** The type of the tensor. */
  default Class<T> type() {
    return asOutput().type();
  }

  @Override
  default Shape shape() {
    return asOutput().shape();
  }
}
