package opgen.ndarray.buffer;

/**
 * Elements in a row.
 *
 * @param <T> the type of an element
 */
public interface DataBuffer<T> {
  /** The number of elements. */
  long size();

  /** Whether no element can be set. */
  boolean isReadOnly();

  /** An element. */
  T getObject(long index);

  /** Sets an element. */
  DataBuffer<T> setObject(T value, long index);

  /** Copies the first {@code size} elements. */
  DataBuffer<T> copyTo(DataBuffer<T> dst, long size);

  /** The elements from {@code index} on; they are shared. */
  default DataBuffer<T> offset(long index) {
    return slice(index, size() - index);
  }

  /** The first {@code size} elements; they are shared. */
  default DataBuffer<T> narrow(long size) {
    return slice(0, size);
  }

  /** {@code size} elements from {@code index} on; they are shared. */
  DataBuffer<T> slice(long index, long size);
}
