package opgen;

import opgen.internal.Node;
import java.util.ArrayList;
import java.util.List;

/** A call of an op that a graph has recorded. */
public final class GraphOperation extends AbstractOperation {
  private final Node node;

  GraphOperation(Graph graph, Node node) {
    super(graph, node);
    this.node = node;
  }

  @Override
  public Graph env() {
    return (Graph) super.env();
  }

  /** The number of its inputs. */
  public int numInputs() {
    return node.inputs();
  }

  /** An input. */
  public Output<?> input(int idx) {
    return new GraphOperation(env(), node.input(idx)).output(node.inputIndex(idx));
  }

  /** All inputs. */
  public List<Operand<?>> inputs() {
    List<Operand<?>> all = new ArrayList<>();
    for (int i = 0; i < numInputs(); i++) {
      all.add(input(i));
    }
    return all;
  }
}
