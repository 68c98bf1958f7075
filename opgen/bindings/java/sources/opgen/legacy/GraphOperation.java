package opgen.legacy;

import opgen.internal.Node;

/** A call of an op that a graph has recorded. */
public final class GraphOperation extends AbstractOperation {
  GraphOperation(Node node) {
    super(node);
  }
}
