package opgen.legacy;

import opgen.internal.Shapes;
import java.util.Arrays;

/** The sizes of a tensor, of which some (-1), or all and their number, may be unknown. */
public final class Shape {
  private final long[] sizes;

  Shape(long[] sizes) {
    this.sizes = sizes;
  }

  /** The shape of which nothing is known. */
  public static Shape unknown() {
    return new Shape(null);
  }

  /** The shape without dimensions. */
  public static Shape scalar() {
    return new Shape(new long[0]);
  }

  /** The shape with these sizes; -1 is unknown. */
  public static Shape make(long firstDimensionSize, long... otherDimensionSizes) {
    long[] sizes = new long[1 + otherDimensionSizes.length];
    sizes[0] = firstDimensionSize;
    System.arraycopy(otherDimensionSizes, 0, sizes, 1, otherDimensionSizes.length);
    return new Shape(sizes);
  }

  /** The number of dimensions; -1 if it is not known. */
  public int numDimensions() {
    return sizes == null ? -1 : sizes.length;
  }

  /** The size of a dimension; -1 if it is not known. */
  public long size(int i) {
    return sizes[i];
  }

  long[] sizes() {
    return sizes == null ? null : sizes.clone();
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(sizes);
  }

  /** Shapes are equal if all their sizes are known, and the same. */
  @Override
  public boolean equals(Object other) {
    return this == other
        || other instanceof Shape && Shapes.count(sizes) >= 0 && Arrays.equals(sizes, ((Shape) other).sizes);
  }

  @Override
  public String toString() {
    return sizes == null ? "<unknown>" : Shapes.shown(sizes);
  }
}
