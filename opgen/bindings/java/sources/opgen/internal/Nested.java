package opgen.internal;

import opgen.ndarray.IllegalRankException;
import opgen.ndarray.Shape;
import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.function.IntFunction;

/** Java's nested arrays, all parts of which have the same lengths. */
public final class Nested {
  private Nested() {}

  /** The shape of a nested array of a depth; throws if its parts have different lengths, or are missing. */
  public static Shape shape(Object array, int depth) {
    whole(array, depth, "StdArrays", "array");
    long[] sizes = new long[depth];
    Object part = array;
    for (int i = 0; i < depth; i++) {
      sizes[i] = Array.getLength(part);
      if (sizes[i] == 0) {
        break;
      }
      part = i + 1 < depth ? Array.get(part, 0) : null;
    }
    check(array, sizes, 0);
    return Shape.of(sizes);
  }

  /** Throws if a nested array, or a part of it, is null; {@code call} and {@code argument} are for the message. */
  public static void whole(Object array, int depth, String call, String argument) {
    String at = missing(array, depth);
    if (at != null) {
      String expected = "an array of " + depth + (depth == 1 ? " dimension" : " dimensions");
      throw Given.wrong(call, argument, expected, at.isEmpty() ? "null" : "one that is null at " + at);
    }
  }

  /** "[2][0]": where the first part is that is missing; null if none is. */
  private static String missing(Object array, int depth) {
    if (array == null) {
      return "";
    }
    for (int i = 0; depth > 1 && i < Array.getLength(array); i++) {
      String found = missing(Array.get(array, i), depth - 1);
      if (found != null) {
        return "[" + i + "]" + found;
      }
    }
    return null;
  }

  private static void check(Object array, long[] sizes, int depth) {
    if (Array.getLength(array) != sizes[depth]) {
      throw new IllegalArgumentException(
          "mismatched lengths (" + sizes[depth] + " and " + Array.getLength(array) + ") in dimension " + depth);
    }
    for (int i = 0; depth + 1 < sizes.length && i < sizes[depth]; i++) {
      check(Array.get(array, i), sizes, depth + 1);
    }
  }

  /** Throws unless two shapes are the same. */
  public static void same(Shape from, Shape to) {
    if (!from.equals(to)) {
      throw new IllegalArgumentException("cannot copy an array of shape " + from + " into one of shape " + to);
    }
  }

  /** A nested array of the lengths that a shape tells. */
  public static Object empty(Class<?> type, Shape shape, int depth) {
    if (shape.numDimensions() != depth) {
      throw new IllegalRankException(
          "cannot copy an array of shape " + shape + " into one of " + depth + " dimensions");
    }
    return Array.newInstance(type, Arrays.stream(shape.asArray()).mapToInt(Math::toIntExact).toArray());
  }

  /** The elements of a nested array in row-major order. */
  public static <A> A flat(Object array, int depth, IntFunction<A> made) {
    A all = made.apply(Math.toIntExact(shape(array, depth).size()));
    copy(array, all, depth, 0, true);
    return all;
  }

  /** Copies elements in row-major order to a nested array. */
  public static void spread(Object all, Object array, int depth) {
    copy(array, all, depth, 0, false);
  }

  private static int copy(Object nested, Object all, int depth, int position, boolean out) {
    int length = Array.getLength(nested);
    if (depth == 1) {
      System.arraycopy(out ? nested : all, out ? 0 : position, out ? all : nested, out ? position : 0, length);
      return position + length;
    }
    int at = position;
    for (int i = 0; i < length; i++) {
      at = copy(Array.get(nested, i), all, depth - 1, at, out);
    }
    return at;
  }
}
