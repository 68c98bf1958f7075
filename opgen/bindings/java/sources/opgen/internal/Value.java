package opgen.internal;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/** A hold on the elements of a tensor: until it is closed, or until nobody refers to it any more. */
public final class Value implements AutoCloseable {
  static final Cleaner CLEANER = Cleaner.create();

  private final Block block;
  private final Hold hold;

  Value(Block block) {
    this(block, null);
  }

  /** Takes over one ownership of the block's memory; if there is a set, the hold is in it as long as it lasts. */
  Value(Block block, Set<Hold> all) {
    this.block = block;
    this.hold = new Hold(block.memory, all);
    if (all != null) {
      all.add(hold);
    }
    hold.cleanable = CLEANER.register(this, hold);
  }

  /** Zeros. */
  public static Value zeros(Element element, long[] shape) {
    long[] own = shape.clone();
    return new Value(new Block(element, own, Memory.allocate(Block.bytes(element, own))));
  }

  /** The type of the elements. */
  public Element element() {
    return block.element;
  }

  /** The sizes; not to be changed. */
  long[] sizes() {
    return block.shape;
  }

  /** The sizes. */
  public long[] shape() {
    return block.shape.clone();
  }

  /** The number of elements. */
  public long count() {
    return bytes() / block.element.bytes();
  }

  /** The bytes of all elements. */
  public long bytes() {
    return block.memory.bytes();
  }

  /** Another hold on the same elements. */
  public Value share() {
    return new Value(acquire());
  }

  Value share(Set<Hold> all) {
    return new Value(acquire(), all);
  }

  /** The elements, owned by the caller until {@code memory.release()}. */
  Block acquire() {
    if (hold.closed.get() || !block.memory.retain()) {
      throw new IllegalStateException("the tensor is closed");
    }
    return block;
  }

  /** Sets all elements from a buffer, which has exactly as many bytes left; they are read up. */
  public void put(ByteBuffer from) {
    Block held = acquire();
    try {
      held.memory.copy(from, true);
    } finally {
      held.memory.release();
    }
  }

  /** Writes all elements to a buffer, which has room for them. */
  public void get(ByteBuffer to) {
    Block held = acquire();
    try {
      held.memory.copy(to, false);
    } finally {
      held.memory.release();
    }
  }

  @Override
  public void close() {
    hold.cleanable.clean();
  }

  /** Lets go of memory, once. */
  static final class Hold implements Runnable {
    private final AtomicBoolean closed = new AtomicBoolean();
    private final Memory memory;
    private final Set<Hold> all;
    private volatile Cleaner.Cleanable cleanable;

    Hold(Memory memory, Set<Hold> all) {
      this.memory = memory;
      this.all = all;
    }

    @Override
    public void run() {
      if (closed.compareAndSet(false, true)) {
        if (all != null) {
          all.remove(this);
        }
        memory.release();
      }
    }

    void close() {
      Cleaner.Cleanable known = cleanable;
      if (known == null) {
        run();
      } else {
        known.clean();
      }
    }
  }
}
