package opgen.op;

import opgen.Operand;
import opgen.Operation;
import opgen.OperationBuilder;
import opgen.Output;
import opgen.internal.Given;
import opgen.types.family.TType;

/** A call of an op, of which every op has a class. */
public abstract class RawOp implements Op {
  /** The operation. */
  protected final Operation operation;

  /** Throws unless the operation is a call of the op. */
  protected RawOp(Operation operation, String requiredType) {
    if (!requiredType.equals(operation.type())) {
      throw new IllegalArgumentException(
          "'" + operation.name() + "' is a call of " + operation.type() + ", not of " + requiredType);
    }
    this.operation = operation;
  }

  @Override
  public Operation op() {
    return operation;
  }

  /** The result that an operand is; null for null. */
  protected static <T extends TType> Output<T> outputOf(Operand<T> operand) {
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
    return other instanceof RawOp && operation.equals(((RawOp) other).operation);
  }

  @Override
  public final String toString() {
    return "<" + operation.type() + " '" + operation.name() + "'>";
  }
}
