package opgen.internal;

import java.util.Set;

/** A call of an op: the op, and its attributes as words for the native library. */
final class Call {
  private final OpDef op;
  private final long[] attributes;

  Call(OpDef op, long[][] given) {
    this.op = op;
    int length = 0;
    for (long[] words : given) {
      length += words == null ? 1 : words.length;
    }
    attributes = new long[length];
    int at = 0;
    for (long[] words : given) {
      if (words == null) {
        attributes[at++] = -1; // not given
      } else {
        System.arraycopy(words, 0, attributes, at, words.length);
        at += words.length;
      }
    }
  }

  OpDef op() {
    return op;
  }

  /**
   * Runs the call.
   *
   * @param inputs owned by the caller
   * @param where follows the message of a call that fails
   * @return the results, owned by the caller
   */
  Block[] run(Block[] inputs, String where) {
    long[] found = new long[op.outputs() * Native.RESULT_WORDS];
    Memory.relieve();
    long[] words = words(inputs);
    byte[] reply = Native.run(op.number, false, words, found);
    if (Failure.isLackOfMemory(reply)) {
      Memory.collect();
      reply = Native.run(op.number, false, words, found);
    }
    Failure.check(reply, where);
    Block[] results = new Block[op.outputs()];
    for (int i = 0; i < results.length; i++) {
      Element element = Element.ofWord(found[i * Native.RESULT_WORDS + 1]);
      long[] shape = shape(found, i);
      long bytes = element.bytes();
      for (long size : shape) {
        bytes *= size;
      }
      results[i] = new Block(element, shape, new Memory(found[i * Native.RESULT_WORDS], bytes));
    }
    return results;
  }

  /** The shapes of the results, for inputs of which only those that are needed have memory. */
  long[][] shapes(Block[] inputs, String where) {
    long[] found = new long[op.outputs() * Native.RESULT_WORDS];
    Failure.check(Native.run(op.number, true, words(inputs), found), where);
    long[][] shapes = new long[op.outputs()][];
    for (int i = 0; i < shapes.length; i++) {
      shapes[i] = shape(found, i);
    }
    return shapes;
  }

  private static long[] shape(long[] found, int result) {
    int begin = result * Native.RESULT_WORDS;
    long[] shape = new long[(int) found[begin + 2]];
    System.arraycopy(found, begin + 3, shape, 0, shape.length);
    return shape;
  }

  private long[] words(Block[] inputs) {
    int length = attributes.length;
    for (Block b : inputs) {
      length += 3 + b.shape.length;
    }
    long[] words = new long[length];
    int at = 0;
    for (Block b : inputs) {
      words[at] = b.memory == null ? 0 : b.memory.address();
      words[at + 1] = b.element.word();
      words[at + 2] = b.shape.length;
      System.arraycopy(b.shape, 0, words, at + 3, b.shape.length);
      at += 3 + b.shape.length;
    }
    System.arraycopy(attributes, 0, words, at, attributes.length);
    return words;
  }

  /** The results of a call as values. */
  static Value[] held(Block[] blocks, Set<Value.Hold> all) {
    Value[] values = new Value[blocks.length];
    for (int i = 0; i < blocks.length; i++) {
      values[i] = new Value(blocks[i], all);
    }
    return values;
  }
}
