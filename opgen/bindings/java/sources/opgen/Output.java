package opgen;

import opgen.internal.Typed;
import opgen.ndarray.Shape;
import opgen.proto.DataType;
import opgen.types.family.TType;
import java.util.Objects;

/**
 * A result of an operation.
 *
 * @param <T> the type of the tensor
 */
public final class Output<T extends TType> implements Operand<T> {
  private final AbstractOperation operation;
  private final int index;

  Output(AbstractOperation operation, int index) {
    this.operation = operation;
    this.index = index;
  }

  /** Which of the operation's results it is. */
  public int index() {
    return index;
  }

  /** "OPERATION:INDEX". */
  public String name() {
    return operation.name() + ":" + index;
  }

  /** The type of the elements. */
  public DataType dataType() {
    return DataType.forNumber(operation.step().element(index).number());
  }

  @Override
  @SuppressWarnings("unchecked") // the class of the elements that are there
  public Class<T> type() {
    return (Class<T>) Typed.type(operation.step().element(index));
  }

  /** The same result, if it is of the type; throws if it is not. */
  @SuppressWarnings("unchecked") // has just been checked
  public <U extends TType> Output<U> expect(Class<U> type) {
    if (type != type().asSubclass(TType.class)) {
      throw new IllegalArgumentException(
          name() + " is of type " + type().getSimpleName() + ", not " + type.getSimpleName());
    }
    return (Output<U>) this;
  }

  @Override
  @SuppressWarnings("unchecked") // of the type of the elements that are there
  public T asTensor() {
    return (T) Typed.of(operation.step().value(index));
  }

  @Override
  public Shape shape() {
    long[] sizes = operation.step().shape(index);
    return sizes == null ? Shape.unknown() : Shape.of(sizes);
  }

  @Override
  public Operation op() {
    return operation;
  }

  @Override
  public Output<T> asOutput() {
    return this;
  }

  AbstractOperation operation() {
    return operation;
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
    return "<" + operation.type() + " '" + name() + "' shape=" + shape() + " dtype=" + dataType() + ">";
  }
}
