package opgen.ndarray;

import opgen.internal.Shapes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The sizes of a tensor or array, one for each dimension; some of them, or all and their number, may be unknown. */
public final class Shape {
  /** A size that is not known. */
  public static final long UNKNOWN_SIZE = -1L;

  private static final Shape UNKNOWN = new Shape(null);
  private static final Shape SCALAR = new Shape(new long[0]);

  private final long[] sizes;

  private Shape(long[] sizes) {
    this.sizes = sizes;
  }

  /** The shape of which nothing is known, not even the number of dimensions. */
  public static Shape unknown() {
    return UNKNOWN;
  }

  /** The shape without dimensions. */
  public static Shape scalar() {
    return SCALAR;
  }

  /**
   * The shape with these sizes.
   *
   * @param dimensionSizes a size for each dimension; {@link #UNKNOWN_SIZE} where it is not known
   */
  public static Shape of(long... dimensionSizes) {
    return dimensionSizes == null || dimensionSizes.length == 0 ? SCALAR : new Shape(dimensionSizes.clone());
  }

  /** The number of elements; {@link #UNKNOWN_SIZE} if it is not known. */
  public long size() {
    return sizes == null ? UNKNOWN_SIZE : Shapes.count(sizes);
  }

  /** The size of a dimension. */
  @Deprecated
  public long size(int i) {
    return get(i);
  }

  /**
   * The size of a dimension.
   *
   * @param i the dimension; a negative one is counted from the end
   */
  public long get(int i) {
    return sizes == null ? UNKNOWN_SIZE : sizes[i < 0 ? sizes.length + i : i];
  }

  /** The number of dimensions; -1 if it is not known. */
  public int numDimensions() {
    return sizes == null ? -1 : sizes.length;
  }

  /** Whether some size is not known. */
  public boolean hasUnknownDimension() {
    return sizes == null || Arrays.stream(sizes).anyMatch(size -> size == UNKNOWN_SIZE);
  }

  /** Whether there are no dimensions. */
  public boolean isScalar() {
    return numDimensions() == 0;
  }

  /** Whether there is one dimension. */
  public boolean isVector() {
    return numDimensions() == 1;
  }

  /** Whether there are two dimensions. */
  public boolean isMatrix() {
    return numDimensions() == 2;
  }

  /** Whether nothing is known. */
  public boolean isUnknown() {
    return sizes == null;
  }

  /** The sizes; null if nothing is known. */
  public long[] asArray() {
    return sizes == null ? null : sizes.clone();
  }

  /** The sizes; null if nothing is known. */
  public List<Long> toListOrNull() {
    if (sizes == null) {
      return null;
    }
    List<Long> list = new ArrayList<>(sizes.length);
    for (long size : sizes) {
      list.add(size);
    }
    return list;
  }

  /** The first dimension. */
  public Shape head() {
    return take(1);
  }

  /** The first {@code n} dimensions. */
  public Shape take(int n) {
    return subShape(0, n);
  }

  /** All dimensions but the first. */
  public Shape tail() {
    return sizes.length < 2 ? SCALAR : subShape(1, sizes.length);
  }

  /** The last {@code n} dimensions. */
  public Shape takeLast(int n) {
    return subShape(numDimensions() - n, numDimensions());
  }

  /** The dimensions from {@code begin} to before {@code end}. */
  public Shape subShape(int begin, int end) {
    if (begin < 0 || end < begin || end > numDimensions()) {
      throw new ArrayIndexOutOfBoundsException("there are no dimensions " + begin + " to " + end + " in " + this);
    }
    return of(Arrays.copyOfRange(sizes, begin, end));
  }

  /** The shape with another dimension before it. */
  public Shape prepend(long firstDimension) {
    return of(firstDimension).append(this);
  }

  /** The shape with another dimension after it. */
  public Shape append(long lastDimension) {
    return append(of(lastDimension));
  }

  /** The shape with the dimensions of another before it. */
  public Shape prepend(Shape other) {
    return other.append(this);
  }

  /** The shape with the dimensions of another after it. */
  public Shape append(Shape other) {
    long[] all = Arrays.copyOf(sizes, sizes.length + other.sizes.length);
    System.arraycopy(other.sizes, 0, all, sizes.length, other.sizes.length);
    return of(all);
  }

  /** Whether there may be a tensor that has both shapes. */
  public boolean isCompatibleWith(Shape shape) {
    if (isUnknown() || shape.isUnknown()) {
      return true;
    }
    boolean compatible = numDimensions() == shape.numDimensions();
    for (int i = 0; compatible && i < sizes.length; i++) {
      compatible = isCompatible(sizes[i], shape.sizes[i]);
    }
    return compatible;
  }

  /** Whether two sizes may be the same. */
  public static boolean isCompatible(long dim, long otherDim) {
    return dim == UNKNOWN_SIZE || otherDim == UNKNOWN_SIZE || dim == otherDim;
  }

  /** Shapes are equal if all their sizes are known, and the same. */
  @Override
  public boolean equals(Object other) {
    if (this == other) {
      return true;
    }
    return other instanceof Shape
        && !((Shape) other).hasUnknownDimension()
        && Arrays.equals(sizes, ((Shape) other).sizes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(sizes);
  }

  @Override
  public String toString() {
    return Arrays.toString(sizes);
  }
}
