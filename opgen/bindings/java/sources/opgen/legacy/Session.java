package opgen.legacy;

import opgen.internal.Given;
import opgen.internal.Run;
import opgen.internal.Value;
import java.util.ArrayList;
import java.util.List;

/** Runs a graph.  Any number of threads may do so at once. */
public final class Session implements AutoCloseable {
  private final Graph graph;
  private volatile boolean closed;

  /** A session that runs a graph. */
  public Session(Graph g) {
    graph = g;
  }

  /** A run with nothing to do yet. */
  public Runner runner() {
    return new Runner();
  }

  @Override
  public void close() {
    closed = true;
  }

  /** What a run is given, and what is wanted of it. */
  public final class Runner {
    private final Run run = new Run(graph.core());

    private Runner() {}

    /** A tensor in place of the result "OPERATION" or "OPERATION:INDEX". */
    public Runner feed(String operation, Tensor<?> t) {
      return feed(output(operation), t);
    }

    /** A tensor in place of a result. */
    public Runner feed(String operation, int index, Tensor<?> t) {
      return feed(named(operation).output(index), t);
    }

    /** A tensor in place of a result. */
    public Runner feed(Operand<?> operand, Tensor<?> t) {
      Output<?> output = checked(operand).asOutput();
      run.feed(output.step(), output.index(), t == null ? null : t.value());
      return this;
    }

    /** Wants the result "OPERATION" or "OPERATION:INDEX". */
    public Runner fetch(String operation) {
      return fetch(output(operation));
    }

    /** Wants a result. */
    public Runner fetch(String operation, int index) {
      return fetch(named(operation).output(index));
    }

    /** Wants a result. */
    public Runner fetch(Output<?> output) {
      checked(output);
      run.fetch(output.step(), output.index());
      return this;
    }

    /** Wants a result. */
    public Runner fetch(Operand<?> operand) {
      return fetch(checked(operand).asOutput());
    }

    private <O> O checked(O given) {
      return Given.checked(given, "Session.Runner", "operand", "a result of the graph");
    }

    /** Runs an operation whose results nobody wants. */
    public Runner addTarget(String operation) {
      return addTarget(named(operation));
    }

    /** Runs an operation whose results nobody wants. */
    public Runner addTarget(Operation operation) {
      if (!(operation instanceof AbstractOperation)) {
        throw new IllegalArgumentException("an operation of another library cannot be run here");
      }
      run.target(((AbstractOperation) operation).step());
      return this;
    }

    /** Runs an operation whose results nobody wants. */
    public Runner addTarget(Operand<?> operand) {
      return addTarget(operand.asOutput().op());
    }

    /**
     * Runs what is needed; the tensors are the caller's to close.
     *
     * @return a tensor for each fetch
     */
    public List<Tensor<?>> run() {
      if (closed) {
        throw new IllegalStateException("the session is closed");
      }
      List<Tensor<?>> tensors = new ArrayList<>();
      for (Value value : run.run()) {
        tensors.add(new Tensor<>(value));
      }
      return tensors;
    }

    private GraphOperation named(String name) {
      GraphOperation found = graph.operation(name);
      if (found == null) {
        throw new IllegalArgumentException("there is no operation '" + name + "' in the graph");
      }
      return found;
    }

    private Output<?> output(String name) {
      int colon = name.lastIndexOf(':');
      if (colon < 0) {
        return named(name).output(0);
      }
      try {
        return named(name.substring(0, colon)).output(Integer.parseInt(name.substring(colon + 1)));
      } catch (NumberFormatException e) {
        throw new IllegalArgumentException("there is no output '" + name + "' in the graph", e);
      }
    }
  }
}
