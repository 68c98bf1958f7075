package opgen.internal;

import opgen.exceptions.TFInvalidArgumentException;
import java.util.ArrayList;
import java.util.List;

/**
 * One run of a graph: each node that is needed once, in the order recorded; results are let go after their last use.
 * Put together by one thread.
 */
public final class Run {
  private final Recording graph;
  private final List<Node> fedNodes = new ArrayList<>();
  private final List<Integer> fedIndices = new ArrayList<>();
  private final List<Value> fedValues = new ArrayList<>();
  private final List<Node> fetched = new ArrayList<>();
  private final List<Integer> fetchedIndices = new ArrayList<>();
  private final List<Node> targets = new ArrayList<>();
  private List<Node> nodes;
  private Block[][] results;
  private boolean[][] fed;
  private int[] uses;
  private boolean[] needed;

  /** A run of a graph that has nothing to do yet. */
  public Run(Recording graph) {
    this.graph = graph;
  }

  /** A value in place of a result; null is refused. */
  public void feed(Step step, int output, Value value) {
    Node node = own(step, output);
    if (value == null) {
      throw unfed(node, output, "nothing");
    }
    fedNodes.add(node);
    fedIndices.add(output);
    fedValues.add(value);
  }

  /** A result that is wanted. */
  public void fetch(Step step, int output) {
    fetched.add(own(step, output));
    fetchedIndices.add(output);
  }

  /** An operation that shall run. */
  public void target(Step step) {
    targets.add(own(step, 0));
  }

  /** Whether nothing is wanted. */
  public boolean empty() {
    return fetched.isEmpty() && targets.isEmpty();
  }

  /** What is wanted, in order; each is the caller's. */
  public Value[] run() {
    nodes = graph.open();
    results = new Block[nodes.size()][];
    fed = new boolean[nodes.size()][];
    uses = new int[nodes.size()];
    needed = new boolean[nodes.size()];
    try {
      for (int i = 0; i < fedNodes.size(); i++) {
        feed(fedNodes.get(i), fedIndices.get(i), fedValues.get(i));
      }
      plan();
      for (int i = 0; i < needed.length; i++) {
        if (needed[i]) {
          runNode(nodes.get(i));
        }
      }
      Value[] values = new Value[fetched.size()];
      for (int i = 0; i < values.length; i++) {
        Block block = results[fetched.get(i).id][fetchedIndices.get(i)];
        block.memory.retain(); // this run owns it
        values[i] = new Value(block);
      }
      return values;
    } finally {
      for (int i = 0; i < results.length; i++) {
        letGo(i);
      }
    }
  }

  private Node own(Step step, int output) {
    step.checkOutput(output);
    if (step.environment() != graph) {
      String name = "'" + step.name() + ":" + output + "'";
      String what = step.environment().eager() ? name + ", which has run already," : name + " of another graph";
      throw new TFInvalidArgumentException(what + " can be neither fed nor fetched here");
    }
    return (Node) step;
  }

  private void feed(Node node, int output, Value value) {
    Block block = value.acquire();
    if (block.element != node.element(output) || !Shapes.fits(node.sizes(output), block.shape)) {
      block.memory.release();
      String given = block.element.shown() + Shapes.shown(block.shape);
      throw unfed(node, output, given);
    }
    if (results[node.id] == null) {
      results[node.id] = new Block[node.outputs()];
      fed[node.id] = new boolean[node.outputs()];
    }
    if (results[node.id][output] != null) {
      results[node.id][output].memory.release();
    }
    results[node.id][output] = block;
    fed[node.id][output] = true;
  }

  private static TFInvalidArgumentException unfed(Node node, int output, String given) {
    String expected = ": expected " + node.described(output) + " to be fed, given ";
    return new TFInvalidArgumentException(node.type() + expected + given + node.where());
  }

  /** Finds out which nodes are needed, and how often their results are used. */
  private void plan() {
    for (int i = 0; i < fetched.size(); i++) {
      need(fetched.get(i), fetchedIndices.get(i));
    }
    for (Node target : targets) {
      needed[target.id] |= fed[target.id] == null || target.outputs() > 1;
    }
    for (int i = needed.length - 1; i >= 0; i--) {
      Node node = nodes.get(i);
      for (int k = 0; needed[i] && k < node.inputs.length; k++) {
        need(node.inputs[k], node.indices[k]);
      }
    }
  }

  private void need(Node node, int output) {
    uses[node.id]++;
    if (fed[node.id] == null || !fed[node.id][output]) {
      needed[node.id] = true;
    }
  }

  private void runNode(Node node) {
    Block[] found = compute(node);
    if (results[node.id] == null) {
      results[node.id] = found;
    } else {
      for (int i = 0; i < found.length; i++) {
        if (fed[node.id][i]) {
          found[i].memory.release();
        } else {
          results[node.id][i] = found[i];
        }
      }
    }
    for (Node input : node.inputs) {
      if (--uses[input.id] == 0) {
        letGo(input.id);
      }
    }
  }

  private Block[] compute(Node node) {
    if (node.constant != null) {
      return new Block[] {node.constant.acquire()};
    }
    if (node.call == null) {
      throw unfed(node, 0, "nothing");
    }
    Block[] inputs = new Block[node.inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      inputs[i] = results[node.inputs[i].id][node.indices[i]];
    }
    return node.call.run(inputs, node.where());
  }

  private void letGo(int id) {
    if (results[id] != null) {
      for (Block block : results[id]) {
        if (block != null) {
          block.memory.release();
        }
      }
      results[id] = null;
    }
  }
}
