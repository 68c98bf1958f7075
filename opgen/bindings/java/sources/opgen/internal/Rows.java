package opgen.internal;

/** What rows of elements check. */
final class Rows {
  private Rows() {}

  /** Throws unless elements are within a row. */
  static void within(long begin, long count, long size) {
    if (begin < 0 || count < 0 || begin > size - count) {
      throw new IndexOutOfBoundsException("elements " + begin + " to " + (begin + count) + " of " + size);
    }
  }

  /** Throws where elements cannot be set. */
  static void writable(boolean readOnly) {
    if (readOnly) {
      throw new java.nio.ReadOnlyBufferException();
    }
  }
}
