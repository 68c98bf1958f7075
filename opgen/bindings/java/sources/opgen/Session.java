package opgen;

import opgen.internal.Given;
import opgen.internal.Run;
import opgen.internal.Typed;
import opgen.internal.Value;
import opgen.op.Op;
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

  /** The graph that it runs. */
  public Graph graph() {
    return graph;
  }

  /** A run with nothing to do yet. */
  public Runner runner() {
    return new Runner();
  }

  /** Runs an operation, by its name. */
  public void run(String opName) {
    runner().addTarget(opName).run().close();
  }

  /** Runs an operation. */
  public void run(Op op) {
    runner().addTarget(op).run().close();
  }

  @Override
  public void close() {
    closed = true;
  }

  /** What a run is given, and what is wanted of it. */
  public final class Runner {
    private final Run run = new Run(graph.core());
    private final List<String> names = new ArrayList<>();

    private Runner() {}

    /** A tensor in place of the result "OPERATION" or "OPERATION:INDEX". */
    public Runner feed(String operation, Tensor t) {
      return feed(graph.outputOrThrow(operation), t);
    }

    /** A tensor in place of a result. */
    public Runner feed(String operation, int index, Tensor t) {
      return feed(graph.operationOrThrow(operation).output(index), t);
    }

    /** A tensor in place of a result. */
    public Runner feed(Operand<?> operand, Tensor t) {
      Output<?> output = checked(operand).asOutput();
      run.feed(output.operation().step(), output.index(), t == null ? null : Typed.value(t));
      return this;
    }

    /** Wants the result "OPERATION" or "OPERATION:INDEX". */
    public Runner fetch(String operation) {
      return fetch(graph.outputOrThrow(operation));
    }

    /** Wants a result. */
    public Runner fetch(String operation, int index) {
      return fetch(graph.operationOrThrow(operation).output(index));
    }

    /** Wants a result. */
    public Runner fetch(Output<?> output) {
      checked(output);
      run.fetch(output.operation().step(), output.index());
      names.add(output.name());
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
      return addTarget(graph.operationOrThrow(operation));
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
    public Runner addTarget(Op op) {
      return addTarget(op.op());
    }

    /** Whether nothing is wanted. */
    public boolean isEmpty() {
      return run.empty();
    }

    /**
     * Runs what is needed; the results are the caller's to close.
     *
     * @return a tensor for each fetch
     */
    public Result run() {
      if (closed) {
        throw new IllegalStateException("the session is closed");
      }
      List<Tensor> tensors = new ArrayList<>();
      for (Value value : run.run()) {
        tensors.add(Typed.of(value));
      }
      return new Result(names, tensors);
    }
  }
}
