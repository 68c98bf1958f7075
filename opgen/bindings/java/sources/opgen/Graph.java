package opgen;

import opgen.internal.Node;
import opgen.internal.Recording;
import opgen.op.OpScope;
import opgen.op.Scope;
import java.util.Iterator;

/**
 * Recorded operations, which a {@link Session} runs.  A call is checked when it is recorded, as far as its shapes are
 * known.
 */
public final class Graph implements ExecutionEnvironment, AutoCloseable {
  private final Recording core = new Recording();
  private final Scope baseScope = new OpScope(this);

  /** An empty graph. */
  public Graph() {}

  Recording core() {
    return core;
  }

  /** The operation of a name; null if there is none. */
  public GraphOperation operation(String name) {
    Node node = core.node(name);
    return node == null ? null : new GraphOperation(this, node);
  }

  /** The operation of a name; throws if there is none. */
  public GraphOperation operationOrThrow(String name) {
    GraphOperation found = operation(name);
    if (found == null) {
      throw new IllegalArgumentException("there is no operation '" + name + "' in the graph");
    }
    return found;
  }

  /** The result "OPERATION:INDEX", or the first of "OPERATION"; null if there is none. */
  public Output<?> output(String output) {
    int colon = output.lastIndexOf(':');
    String name = colon < 0 ? output : output.substring(0, colon);
    GraphOperation found = operation(name);
    if (found == null) {
      return null;
    }
    try {
      int index = colon < 0 ? 0 : Integer.parseInt(output.substring(colon + 1));
      return index < 0 || index >= found.numOutputs() ? null : found.output(index);
    } catch (NumberFormatException e) {
      return null;
    }
  }

  /** The result of a name; throws if there is none. */
  public Output<?> outputOrThrow(String output) {
    Output<?> found = output(output);
    if (found == null) {
      throw new IllegalArgumentException("there is no output '" + output + "' in the graph");
    }
    return found;
  }

  /** All operations, in the order recorded. */
  public Iterator<GraphOperation> operations() {
    return core.nodes().stream().map(node -> new GraphOperation(this, node)).iterator();
  }

  @Override
  public OperationBuilder opBuilder(String type, String name, Scope scope) {
    return new CallBuilder(core.builder(type, name), step -> new GraphOperation(this, (Node) step));
  }

  @Override
  public Types environmentType() {
    return Types.GRAPH;
  }

  @Override
  public Scope baseScope() {
    return baseScope;
  }

  @Override
  public String uniqueName(String name) {
    return core.unique(name);
  }

  /** Lets go of the constants; nothing can be recorded or run afterwards. */
  @Override
  public void close() {
    core.close();
  }
}
