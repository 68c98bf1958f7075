package opgen.legacy;

import opgen.internal.Node;
import opgen.internal.Recording;
import java.util.Iterator;

/**
 * Recorded operations, which a {@link Session} runs.  A call is checked when it is recorded, as far as its shapes are
 * known.
 */
public final class Graph implements ExecutionEnvironment, AutoCloseable {
  private final Recording core = new Recording();

  /** An empty graph. */
  public Graph() {}

  Recording core() {
    return core;
  }

  /** The operation of a name; null if there is none. */
  public GraphOperation operation(String name) {
    Node node = core.node(name);
    return node == null ? null : new GraphOperation(node);
  }

  /** All operations, in the order recorded. */
  public Iterator<Operation> operations() {
    return core.nodes().stream().<Operation>map(GraphOperation::new).iterator();
  }

  @Override
  public OperationBuilder opBuilder(String type, String name) {
    return new CallBuilder(core.builder(type, name), step -> new GraphOperation((Node) step));
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
