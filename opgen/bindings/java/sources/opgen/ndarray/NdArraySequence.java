package opgen.ndarray;

import java.util.function.BiConsumer;

/**
 * Parts of an array, in row-major order.
 *
 * @param <T> what a part is
 */
public interface NdArraySequence<T extends NdArray<?>> extends Iterable<T> {
  /** Does something with each part and its coordinates. */
  void forEachIndexed(BiConsumer<long[], T> consumer);
}
