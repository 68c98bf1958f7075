package opgen.internal;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Runs operations when they are built.  Any number of threads may do so. */
public final class Eager extends Environment {
  private final Set<Value.Hold> held = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  @Override
  public boolean eager() {
    return true;
  }

  @Override
  public String unique(String name) {
    return name;
  }

  @Override
  Step build(Builder b) {
    if (closed) {
      throw new IllegalStateException("the eager session is closed");
    }
    if (b.constant != null) {
      return new Done(this, b.type, b.name, new Value[] {b.constant.share(held)});
    }
    if (b.op == null) {
      throw b.wrong("cannot be run at once: a session feeds it");
    }
    Block[] inputs = new Block[b.inputs()];
    int owned = 0;
    try {
      for (; owned < inputs.length; owned++) {
        if (!b.input(owned).environment().eager()) {
          String given = b.said(owned) + " of a graph, which a session runs";
          throw b.wrong(b.op.inputs[owned], "a tensor that is there", given);
        }
        inputs[owned] = b.input(owned).value(b.index(owned)).acquire();
      }
      return new Done(this, b.type, b.name, Call.held(b.call().run(inputs, ""), held));
    } finally {
      for (int i = 0; i < owned; i++) {
        inputs[i].memory.release();
      }
    }
  }

  /** Lets go of the results of all operations. */
  @Override
  public void close() {
    closed = true;
    for (Value.Hold hold : held) {
      hold.close();
    }
  }
}
