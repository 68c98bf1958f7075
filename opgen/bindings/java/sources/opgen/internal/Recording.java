package opgen.internal;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Recorded operations, in an order in which they can be run.  Any number of threads may record and run. */
public final class Recording extends Environment {
  private final List<Node> nodes = new ArrayList<>();
  private final Map<String, Node> byName = new HashMap<>();
  private final Map<String, Integer> given = new HashMap<>();
  private boolean closed;

  @Override
  public boolean eager() {
    return false;
  }

  @Override
  public synchronized String unique(String name) {
    String candidate = name;
    while (given.containsKey(candidate)) {
      int next = given.merge(name, 1, Integer::sum);
      candidate = name + "_" + next;
    }
    given.put(candidate, 0);
    return candidate;
  }

  /** The node of a name; null if there is none. */
  public synchronized Node node(String name) {
    return byName.get(name);
  }

  /** The nodes so far. */
  public synchronized List<Node> nodes() {
    return new ArrayList<>(nodes);
  }

  /** The nodes so far, for a run; throws if the graph is closed. */
  synchronized List<Node> open() {
    checkOpen();
    return nodes();
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the graph is closed");
    }
  }

  @Override
  synchronized Node build(Builder b) {
    checkOpen();
    if (byName.containsKey(b.name)) {
      throw b.wrong("there is a node '" + b.name + "' in the graph already");
    }
    Node node = b.constant != null ? constant(b) : b.op == null ? fed(b) : recorded(b);
    nodes.add(node);
    byName.put(b.name, node);
    given.putIfAbsent(b.name, 0);
    return node;
  }

  /** Lets go of the constants; the graph is of no use afterwards. */
  @Override
  public synchronized void close() {
    closed = true;
    for (Node node : nodes) {
      if (node.constant != null) {
        node.constant.close();
      }
    }
  }

  private Node constant(Builder b) {
    Value own = b.constant.share();
    Element[] elements = {own.element()};
    return new Node(this, b, nodes.size(), new Node[0], null, own, elements, new long[][] {own.sizes()});
  }

  private Node fed(Builder b) {
    Element[] elements = {b.element};
    return new Node(this, b, nodes.size(), new Node[0], null, null, elements, new long[][] {b.shape});
  }

  /** A call of an op: checked, and its shapes worked out, as soon as all that counts is known. */
  private Node recorded(Builder b) {
    Node[] inputs = new Node[b.inputs()];
    for (int i = 0; i < inputs.length; i++) {
      Step step = b.input(i);
      if (step.environment() != this) {
        boolean eager = step.environment().eager();
        String what = eager ? ", which has run already: a constant of its tensor can be" : " of another graph";
        throw b.wrong(b.op.inputs[i], "a result of this graph", b.said(i) + what);
      }
      inputs[i] = (Node) step;
    }
    Call call = b.call();
    Element[] elements = new Element[b.op.outputs()];
    for (int i = 0; i < elements.length; i++) {
      int typed = b.op.typedBy[i];
      elements[i] = typed < 0 ? b.op.types[i] : inputs[typed].element(b.index(typed));
    }
    long[][] shapes = shapes(b, inputs, call);
    return new Node(this, b, nodes.size(), inputs, call, null, elements, shapes);
  }

  private static long[][] shapes(Builder b, Node[] inputs, Call call) {
    Block[] blocks = new Block[inputs.length];
    int owned = 0;
    try {
      for (; owned < inputs.length; owned++) {
        Node node = inputs[owned];
        long[] shape = node.sizes(b.index(owned));
        boolean missing = b.op.sizes[owned] && node.constant == null;
        if (missing || !Shapes.known(shape)) {
          return new long[b.op.outputs()][];
        }
        blocks[owned] =
            b.op.sizes[owned] ? node.constant.acquire() : new Block(node.element(b.index(owned)), shape, null);
      }
      return call.shapes(blocks, " (node '" + b.name + "')");
    } finally {
      for (int i = 0; i < owned; i++) {
        if (blocks[i].memory != null) {
          blocks[i].memory.release();
        }
      }
    }
  }
}
