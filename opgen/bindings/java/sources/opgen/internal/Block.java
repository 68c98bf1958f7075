package opgen.internal;

import java.util.Arrays;

/** Elements of one type in row-major order. */
final class Block {
  final Element element;
  final long[] shape;
  final Memory memory;

  Block(Element element, long[] shape, Memory memory) {
    this.element = element;
    this.shape = shape;
    this.memory = memory;
  }

  /** The bytes that elements of a shape take; throws if no tensor has the shape. */
  static long bytes(Element element, long[] shape) {
    long count = 1;
    boolean empty = false;
    for (long size : shape) {
      if (size < 0 || size != 0 && count > Long.MAX_VALUE / 8 / size) {
        throw new IllegalArgumentException("no tensor has the shape " + Arrays.toString(shape));
      }
      empty |= size == 0;
      count *= size == 0 ? 1 : size;
    }
    return empty ? 0 : count * element.bytes();
  }
}
