package opgen.internal;

/** Lists of sizes; -1 is unknown, and null that even their number is. */
public final class Shapes {
  private Shapes() {}

  /** "[1, 2, ?]", or "[...]" if nothing is known. */
  public static String shown(long[] shape) {
    if (shape == null) {
      return "[...]";
    }
    StringBuilder text = new StringBuilder("[");
    for (int i = 0; i < shape.length; i++) {
      text.append(i == 0 ? "" : ", ").append(shape[i] < 0 ? "?" : Long.toString(shape[i]));
    }
    return text.append(']').toString();
  }

  /** Whether all sizes are known. */
  static boolean known(long[] shape) {
    if (shape == null) {
      return false;
    }
    for (long size : shape) {
      if (size < 0) {
        return false;
      }
    }
    return true;
  }

  /** Whether a tensor of sizes that are known may have the place of another. */
  static boolean fits(long[] partial, long[] shape) {
    if (partial == null) {
      return true;
    }
    boolean fits = partial.length == shape.length;
    for (int i = 0; fits && i < shape.length; i++) {
      fits = partial[i] < 0 || partial[i] == shape[i];
    }
    return fits;
  }

  /** The number of elements; -1 if it is not known. */
  public static long count(long[] shape) {
    if (!known(shape)) {
      return -1;
    }
    long count = 1;
    for (long size : shape) {
      count *= size;
    }
    return count;
  }
}
