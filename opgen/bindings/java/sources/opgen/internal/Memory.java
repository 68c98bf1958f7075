package opgen.internal;

import opgen.exceptions.TFResourceExhaustedException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Native memory with a count of its owners: it is freed when the last one lets it go.  Who reads or writes it owns it
 * meanwhile, so that closing a tensor elsewhere never takes memory away under a call.
 */
final class Memory {
  private static final int CHUNK_BITS = 30;
  private static final long CHUNK = 1L << CHUNK_BITS;

  private final AtomicInteger owners = new AtomicInteger(1);
  private final long address;
  private final long bytes;
  private volatile ByteBuffer[] views;

  /** Takes memory over that the native library has allocated. */
  Memory(long address, long bytes) {
    this.address = address;
    this.bytes = bytes;
    Pressure.add(bytes);
  }

  static Memory allocate(long bytes) {
    Pressure.relieve(bytes);
    long address = Native.allocate(bytes);
    if (address == 0) {
      Pressure.collect();
      address = Native.allocate(bytes);
    }
    if (address == 0) {
      Pressure.forget();
      throw new TFResourceExhaustedException("no memory for a tensor of " + bytes + " bytes");
    }
    return new Memory(address, bytes);
  }

  /** Before memory is asked for elsewhere: makes room where much is held by tensors that nobody uses any more. */
  static void relieve() {
    Pressure.relieve(0);
  }

  /** Frees what is held by tensors that nobody uses any more. */
  static void collect() {
    Pressure.collect();
  }

  long address() {
    return address;
  }

  long bytes() {
    return bytes;
  }

  /** Becomes one of the owners, unless the memory is freed already. */
  boolean retain() {
    for (int n = owners.get(); n > 0; n = owners.get()) {
      if (owners.compareAndSet(n, n + 1)) {
        return true;
      }
    }
    return false;
  }

  void release() {
    if (owners.decrementAndGet() == 0) {
      views = null;
      Native.free(address);
      Pressure.remove(bytes);
    }
  }

  /** The buffer that holds a byte (only for owners); the byte's place in it is {@link #place}. */
  ByteBuffer buffer(long position) {
    ByteBuffer[] all = views;
    if (all == null) {
      all = new ByteBuffer[Math.max(1, (int) ((bytes + CHUNK - 1) >>> CHUNK_BITS))];
      for (int i = 0; i < all.length; i++) {
        long begin = (long) i << CHUNK_BITS;
        all[i] = Native.view(address + begin, Math.min(CHUNK, bytes - begin)).order(ByteOrder.nativeOrder());
      }
      views = all;
    }
    return all[(int) (position >>> CHUNK_BITS)];
  }

  static int place(long position) {
    return (int) (position & (CHUNK - 1));
  }

  /** Copies all bytes from a buffer, or to it. */
  void copy(ByteBuffer other, boolean in) {
    for (long at = 0; at < bytes; at += CHUNK) {
      ByteBuffer own = buffer(at).duplicate();
      if (in) {
        own.put(other.slice().limit(own.remaining()));
      } else {
        other.slice().put(own.duplicate());
      }
      other.position(other.position() + buffer(at).capacity());
    }
  }

  /**
   * Native memory that the collector does not see: where much of it belongs to tensors that nobody holds any more, the
   * collector is asked to find them.
   */
  private static final class Pressure {
    private static final long LEAST = 256L << 20;
    /** So often nothing has been freed, 2 ms apart, when the cleaner is done: it may wait for a processor. */
    private static final int QUIET = 10;
    private static final AtomicLong LIVE = new AtomicLong();
    private static final AtomicLong LIMIT = new AtomicLong(LEAST);

    private Pressure() {}

    static void add(long bytes) {
      LIVE.addAndGet(bytes);
    }

    static void remove(long bytes) {
      LIVE.addAndGet(-bytes);
    }

    static void relieve(long bytes) {
      long limit = LIMIT.get();
      if (LIVE.get() + bytes > limit && LIMIT.compareAndSet(limit, Long.MAX_VALUE)) {
        collect();
        LIMIT.set(Math.max(LEAST, 2 * (LIVE.get() + bytes)));
      }
    }

    /** What was asked for last has not been had: it is no measure of what is in use. */
    static void forget() {
      LIMIT.set(Math.max(LEAST, 2 * LIVE.get()));
    }

    /**
     * Asks for a collection, and waits until the cleaner has been through what it has found: told by something that is
     * lost at the same time, and by memory no longer being freed.
     */
    static void collect() {
      CountDownLatch cleaned = new CountDownLatch(1);
      Value.CLEANER.register(new Object(), cleaned::countDown);
      System.gc();
      try {
        cleaned.await(2, TimeUnit.SECONDS);
        long least = Long.MAX_VALUE;
        for (int quiet = 0; quiet < QUIET; quiet++) {
          long now = LIVE.get();
          if (now < least) {
            least = now;
            quiet = 0;
          }
          Thread.sleep(2);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
