package opgen.ndarray;

import opgen.ndarray.buffer.DataBuffer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * Elements of one type in any number of dimensions.
 *
 * @param <T> the type of an element
 */
public interface NdArray<T> extends Shaped {
  /** The parts along the dimensions up to one: those of 0 are the rows of a matrix. */
  NdArraySequence<? extends NdArray<T>> elements(int dimensionIdx);

  /** The elements. */
  NdArraySequence<? extends NdArray<T>> scalars();

  /** The same elements in another shape of the same size. */
  NdArray<T> withShape(Shape shape);

  /** The part at coordinates along the first dimensions; it shares the elements. */
  NdArray<T> get(long... coordinates);

  /** Sets the part at coordinates along the first dimensions. */
  NdArray<T> set(NdArray<T> src, long... coordinates);

  /** An element. */
  T getObject(long... coordinates);

  /** Sets an element. */
  NdArray<T> setObject(T value, long... coordinates);

  /** The elements, in row-major order. */
  default Stream<T> streamOfObjects() {
    return StreamSupport.stream(scalars().spliterator(), false).map(each -> each.getObject());
  }

  /** Copies all elements to an array of the same shape. */
  NdArray<T> copyTo(NdArray<T> dst);

  /** Copies all elements to a buffer. */
  NdArray<T> copyTo(DataBuffer<T> dst);

  /** Sets all elements from a buffer. */
  NdArray<T> copyFrom(DataBuffer<T> src);

  /** Arrays are equal if their shapes and elements are. */
  @Override
  boolean equals(Object obj);
}
