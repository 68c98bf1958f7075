package opgen.internal;

/** A call that a graph has recorded: of an op, or a constant, or what a run is fed. */
public final class Node extends Step {
  final int id;
  final Node[] inputs;
  final int[] indices;
  /** Null for a constant, and for what is fed. */
  final Call call;
  /** The value of a constant. */
  final Value constant;
  private final Element[] elements;
  private final long[][] shapes;

  Node(
      Recording graph,
      Builder built,
      int id,
      Node[] inputs,
      Call call,
      Value constant,
      Element[] elements,
      long[][] shapes) {
    super(graph, built.type, built.name);
    this.id = id;
    this.inputs = inputs;
    this.indices = built.indices();
    this.call = call;
    this.constant = constant;
    this.elements = elements;
    this.shapes = shapes;
  }

  @Override
  public int outputs() {
    return elements.length;
  }

  @Override
  public Element element(int output) {
    return elements[output];
  }

  @Override
  public long[] shape(int output) {
    long[] shape = shapes[output];
    return shape == null ? null : shape.clone();
  }

  @Override
  public Value value(int output) {
    throw new IllegalStateException("'" + name() + ":" + output + "' is part of a graph: fetch it with a session");
  }

  /** The number of inputs. */
  public int inputs() {
    return inputs.length;
  }

  /** The node that an input is a result of. */
  public Node input(int i) {
    return inputs[i];
  }

  /** Which of its results that input is. */
  public int inputIndex(int i) {
    return indices[i];
  }

  /** "(node 'NAME')", which ends the messages of calls in graphs. */
  String where() {
    return " (node '" + name() + "')";
  }

  /** The sizes without a copy. */
  long[] sizes(int output) {
    return shapes[output];
  }

  /** "float32[1, ?]": what a result is, as far as it is known. */
  String described(int output) {
    return elements[output].shown() + Shapes.shown(shapes[output]);
  }
}
