package opgen.internal;

/** What building an operation gives: a node of a graph, or results that are there already. */
public abstract class Step {
  private final Environment environment;
  private final String type;
  private final String name;

  Step(Environment environment, String type, String name) {
    this.environment = environment;
    this.type = type;
    this.name = name;
  }

  /** Where it was built. */
  public final Environment environment() {
    return environment;
  }

  /** The op that it is a call of. */
  public final String type() {
    return type;
  }

  /** Its name, unique in a graph. */
  public final String name() {
    return name;
  }

  /** The number of results. */
  public abstract int outputs();

  /** The type of a result. */
  public abstract Element element(int output);

  /** The sizes of a result as far as they are known: -1 for a size that is not, null if nothing is. */
  public abstract long[] shape(int output);

  /** A result itself; throws if it is part of a graph, which a session must run first. */
  public abstract Value value(int output);

  /** Throws unless there is such a result. */
  final void checkOutput(int output) {
    if (output < 0 || output >= outputs()) {
      throw new IndexOutOfBoundsException("operation '" + name + "' has no output " + output);
    }
  }
}
