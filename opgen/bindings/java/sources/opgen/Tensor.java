package opgen;

import opgen.internal.Given;
import opgen.internal.Typed;
import opgen.ndarray.Shape;
import opgen.ndarray.Shaped;
import opgen.ndarray.buffer.ByteDataBuffer;
import opgen.proto.DataType;
import opgen.types.family.TType;
import java.util.function.Consumer;

/**
 * Elements of one type in row-major order, in native memory.
 *
 * <p>The memory is freed by {@link #close}; that of a tensor that is never closed is freed some time after nobody
 * refers to the tensor any more.
 */
public interface Tensor extends Shaped, AutoCloseable {
  /** Zeros. */
  static <T extends TType> T of(Class<T> type, Shape shape) {
    return Typed.zeros(type, shape);
  }

  /** A tensor whose elements {@code dataInitializer} sets. */
  static <T extends TType> T of(Class<T> type, Shape shape, Consumer<T> dataInitializer) {
    Given.checked(dataInitializer, "Tensor", "dataInitializer", "what sets the elements");
    T made = of(type, shape);
    try {
      dataInitializer.accept(made);
      return made;
    } catch (RuntimeException | Error e) {
      made.close();
      throw e;
    }
  }

  /** Zeros; {@code size}, in bytes, is at least that of the elements. */
  static <T extends TType> T of(Class<T> type, Shape shape, long size) {
    return of(type, shape, size, data -> {});
  }

  /** A tensor whose elements {@code dataInitializer} sets; {@code size}, in bytes, is at least that of the elements. */
  static <T extends TType> T of(Class<T> type, Shape shape, long size, Consumer<T> dataInitializer) {
    T made = of(type, shape, dataInitializer);
    if (size < made.numBytes()) {
      long needed = made.numBytes();
      made.close();
      throw Given.wrong("Tensor", "size", "at least " + needed + " bytes for shape " + shape, Long.toString(size));
    }
    return made;
  }

  /** A copy of the bytes of all elements, in this machine's order. */
  static <T extends TType> T of(Class<T> type, Shape shape, ByteDataBuffer rawData) {
    Given.checked(rawData, "Tensor", "rawData", "a buffer");
    return of(
        type,
        shape,
        made -> {
          if (rawData.size() != made.numBytes()) {
            String expected = made.numBytes() + " bytes for shape " + shape;
            throw Given.wrong("Tensor", "rawData", expected, Long.toString(rawData.size()));
          }
          rawData.copyTo(made.asRawTensor().data(), rawData.size());
        });
  }

  /** The type of the elements. */
  DataType dataType();

  /** The bytes of all elements. */
  long numBytes();

  @Override
  Shape shape();

  /** The same tensor, as its bytes. */
  RawTensor asRawTensor();

  @Override
  void close();
}
