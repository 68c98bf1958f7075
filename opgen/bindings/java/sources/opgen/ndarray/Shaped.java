package opgen.ndarray;

/** What has a shape. */
public interface Shaped {
  /** The sizes. */
  Shape shape();

  /** The number of dimensions. */
  default int rank() {
    return shape().numDimensions();
  }

  /** The number of elements. */
  default long size() {
    return shape().size();
  }
}
