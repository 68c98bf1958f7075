package opgen;

import opgen.internal.Typed;
import opgen.internal.Value;
import opgen.ndarray.Shape;
import opgen.ndarray.buffer.ByteDataBuffer;
import opgen.proto.DataType;

/** A tensor as its bytes. */
public final class RawTensor implements Tensor, Typed {
  private final Value value;

  /** Not for users: {@link Tensor#asRawTensor} gives one. */
  public RawTensor(Value value) {
    this.value = value;
  }

  @Override
  public Value value() {
    return value;
  }

  @Override
  public DataType dataType() {
    return DataType.forNumber(value.element().number());
  }

  @Override
  public long numBytes() {
    return value.bytes();
  }

  @Override
  public Shape shape() {
    return Shape.of(value.shape());
  }

  @Override
  public RawTensor asRawTensor() {
    return this;
  }

  /** The bytes. */
  public ByteDataBuffer data() {
    return Typed.bytes(value);
  }

  @Override
  public void close() {
    value.close();
  }

  @Override
  public String toString() {
    return dataType() + " tensor with shape " + shape();
  }
}
