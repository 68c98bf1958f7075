package opgen.legacy;

import opgen.internal.Step;
import java.util.Objects;

/**
 * A result of an operation.
 *
 * @param <T> stands for the type of the elements
 */
public final class Output<T> implements Operand<T> {
  private final AbstractOperation operation;
  private final int index;

  Output(AbstractOperation operation, int index) {
    this.operation = operation;
    this.index = index;
  }

  /** The operation. */
  public Operation op() {
    return operation;
  }

  /** Which of the operation's results it is. */
  public int index() {
    return index;
  }

  /** The sizes, as far as they are known. */
  public Shape shape() {
    return new Shape(step().shape(index));
  }

  /** The type of the elements. */
  public DataType dataType() {
    return DataType.of(step().element(index));
  }

  /** The tensor; throws if it is part of a graph, which a session must run first. */
  public Tensor<T> tensor() {
    return new Tensor<>(step().value(index));
  }

  @Override
  public Output<T> asOutput() {
    return this;
  }

  Step step() {
    return operation.step();
  }

  @Override
  public int hashCode() {
    return Objects.hash(operation, index);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Output<?>
        && index == ((Output<?>) other).index
        && operation.equals(((Output<?>) other).operation);
  }

  @Override
  public String toString() {
    String name = operation.name() + ":" + index;
    return "<" + operation.type() + " '" + name + "' shape=" + shape() + " dtype=" + dataType() + ">";
  }
}
