package opgen.internal;

import opgen.ndarray.IllegalRankException;
import opgen.ndarray.NdArray;
import opgen.ndarray.NdArraySequence;
import opgen.ndarray.Shape;
import opgen.ndarray.buffer.DataBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.BiConsumer;
import java.util.function.LongFunction;

/** What arrays over a row of elements share: where an element is. */
abstract class Dense {
  private final Shape shape;
  private final long[] sizes;

  Dense(Shape shape, DataBuffer<?> row) {
    if (shape.hasUnknownDimension()) {
      throw new IllegalArgumentException("no array has the shape " + shape);
    }
    if (shape.size() > row.size()) {
      throw new IllegalArgumentException(row.size() + " elements are too few for an array of shape " + shape);
    }
    this.shape = shape;
    this.sizes = shape.asArray();
  }

  public Shape shape() {
    return shape;
  }

  /** The place of an element. */
  final long element(long[] coordinates) {
    if (coordinates.length != sizes.length) {
      throw new IllegalRankException(
          "an array of shape " + shape + " has no element with " + coordinates.length + " coordinates");
    }
    return begin(coordinates);
  }

  /** The place of the first element of a part. */
  final long begin(long[] coordinates) {
    if (coordinates.length > sizes.length) {
      throw new IllegalRankException(
          "an array of shape " + shape + " has no part with " + coordinates.length + " coordinates");
    }
    long position = 0;
    for (int i = 0; i < sizes.length; i++) {
      long at = i < coordinates.length ? coordinates[i] : 0;
      if (at < 0 || at >= sizes[i] && i < coordinates.length) {
        throw new IndexOutOfBoundsException("coordinate " + at + " of dimension " + i + " of shape " + shape);
      }
      position = position * sizes[i] + at;
    }
    return position;
  }

  /** The shape of parts, by how many coordinates tell one. */
  final Shape rest(int coordinates) {
    return shape.subShape(coordinates, sizes.length);
  }

  /** Throws unless another shape has as many elements. */
  final Shape sameSize(Shape other) {
    if (other.size() != shape.size()) {
      throw new IllegalArgumentException("an array of shape " + shape + " cannot have the shape " + other);
    }
    return other;
  }

  /** The parts that some coordinates tell, from the place of the first element of each. */
  final <A extends NdArray<?>> NdArraySequence<A> parts(int coordinates, LongFunction<A> part) {
    if (coordinates < 0 || coordinates > sizes.length) {
      throw new IllegalArgumentException(
          "an array of shape " + shape + " has no parts with " + coordinates + " coordinates");
    }
    return new Parts<>(shape.take(coordinates), rest(coordinates).size(), part);
  }

  /** Whether another array has the same shape and elements. */
  @Override
  public final boolean equals(Object other) {
    if (this == other) {
      return true;
    }
    if (!(this instanceof NdArray) || !(other instanceof NdArray) || !shape.equals(((NdArray<?>) other).shape())) {
      return false;
    }
    Iterator<? extends NdArray<?>> others = ((NdArray<?>) other).scalars().iterator();
    for (NdArray<?> own : ((NdArray<?>) this).scalars()) {
      if (!own.getObject().equals(others.next().getObject())) {
        return false;
      }
    }
    return true;
  }

  @Override
  public final int hashCode() {
    return shape.hashCode();
  }

  private static final class Parts<A extends NdArray<?>> implements NdArraySequence<A> {
    private final long[] outer;
    private final long count;
    private final long step;
    private final LongFunction<A> part;

    Parts(Shape outer, long step, LongFunction<A> part) {
      this.outer = outer.asArray();
      this.count = outer.size();
      this.step = step;
      this.part = part;
    }

    @Override
    public Iterator<A> iterator() {
      return new Iterator<A>() {
        private long next;

        @Override
        public boolean hasNext() {
          return next < count;
        }

        @Override
        public A next() {
          if (next >= count) {
            throw new NoSuchElementException();
          }
          return part.apply(next++ * step);
        }
      };
    }

    @Override
    public void forEachIndexed(BiConsumer<long[], A> consumer) {
      for (long i = 0; i < count; i++) {
        long[] coordinates = new long[outer.length];
        long rest = i;
        for (int d = outer.length - 1; d >= 0; d--) {
          coordinates[d] = rest % outer[d];
          rest /= outer[d];
        }
        consumer.accept(coordinates, part.apply(i * step));
      }
    }
  }
}
