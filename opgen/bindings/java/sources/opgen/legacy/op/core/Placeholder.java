package opgen.legacy.op.core;

import opgen.internal.Given;
import opgen.legacy.DataType;
import opgen.legacy.Operand;
import opgen.legacy.Operation;
import opgen.legacy.OperationBuilder;
import opgen.legacy.Output;
import opgen.legacy.Shape;
import opgen.legacy.op.PrimitiveOp;
import opgen.legacy.op.Scope;

/**
 * A value that whoever runs the graph gives.
 *
 * @param <T> stands for the type of the elements
 */
public final class Placeholder<T> extends PrimitiveOp implements Operand<T> {
  /** The op's name. */
  public static final String OP_NAME = "Placeholder";

  private final Output<T> output;

  /** The result of an operation. */
  public Placeholder(Operation operation) {
    super(operation, OP_NAME);
    output = operation.output(0);
  }

  /** What may be said beside the type. */
  public static class Options {
    private Shape shape;

    private Options() {}

    /** What is known of the shape; by default nothing. */
    public Options shape(Shape shape) {
      this.shape = shape;
      return this;
    }
  }

  /** A value of a type. */
  public static <T> Placeholder<T> create(Scope scope, Class<T> dtype, Options... options) {
    Given.checked(dtype, OP_NAME, "dtype", "a class of elements");
    OperationBuilder builder = scope.opBuilder(OP_NAME, OP_NAME);
    builder.setAttr("dtype", DataType.fromClass(dtype));
    if (options != null) {
      for (Options each : options) {
        if (Given.option(each, builder).shape != null) {
          builder.setAttr("shape", each.shape);
        }
      }
    }
    return new Placeholder<>(builder.build());
  }

  /** What is known of the shape; by default nothing. */
  public static Options shape(Shape shape) {
    return new Options().shape(shape);
  }

  /** The value. */
  public Output<T> output() {
    return output;
  }

  @Override
  public Output<T> asOutput() {
    return output;
  }
}
