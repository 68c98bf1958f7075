package opgen.legacy.op;

import opgen.internal.Given;
import opgen.legacy.Operand;
import opgen.legacy.Operation;
import opgen.legacy.OperationBuilder;
import opgen.legacy.Output;

/** A call of an op, of which every op has a class. */
public abstract class PrimitiveOp implements Op {
  /** The operation. */
  protected final Operation operation;

  /** Throws unless the operation is a call of the op. */
  protected PrimitiveOp(Operation operation, String requiredType) {
    if (!requiredType.equals(operation.type())) {
      throw new IllegalArgumentException(
          "'" + operation.name() + "' is a call of " + operation.type() + ", not of " + requiredType);
    }
    this.operation = operation;
  }

  /** The result that an operand is; null for null. */
  protected static <T> Output<T> outputOf(Operand<T> operand) {
    return operand == null ? null : operand.asOutput();
  }

  /** One of the options of a call; throws if it is null. */
  protected static <O> O given(OperationBuilder builder, O option) {
    return Given.option(option, builder);
  }

  @Override
  public final int hashCode() {
    return operation.hashCode();
  }

  @Override
  public final boolean equals(Object other) {
    return other instanceof PrimitiveOp && operation.equals(((PrimitiveOp) other).operation);
  }

  @Override
  public final String toString() {
    return "<" + operation.type() + " '" + operation.name() + "'>";
  }
}
