package opgen.op.core;

import opgen.Operand;
import opgen.Operation;
import opgen.OperationBuilder;
import opgen.Output;
import opgen.internal.Given;
import opgen.internal.Typed;
import opgen.ndarray.Shape;
import opgen.op.RawOp;
import opgen.op.Scope;
import opgen.proto.DataType;
import opgen.types.family.TType;

/**
 * A value that whoever runs the graph gives.
 *
 * @param <T> the type of the tensor
 */
public final class Placeholder<T extends TType> extends RawOp implements Operand<T> {
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
  public static <T extends TType> Placeholder<T> create(Scope scope, Class<T> dtype, Options... options) {
    Given.checked(dtype, OP_NAME, "dtype", "a class of tensors");
    OperationBuilder builder = scope.opBuilder(OP_NAME, OP_NAME);
    builder.setAttr("dtype", DataType.forNumber(Typed.element(dtype).number()));
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
