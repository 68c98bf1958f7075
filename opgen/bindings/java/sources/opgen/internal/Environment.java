package opgen.internal;

/** Where operations are built: recorded in a graph, or run at once. */
public abstract class Environment implements AutoCloseable {
  Environment() {}

  /** Whether operations run when they are built. */
  public abstract boolean eager();

  /** The name, or the first of NAME_1, NAME_2... that is free. */
  public abstract String unique(String name);

  abstract Step build(Builder builder);

  /** An operation of this environment that shall be built. */
  public final Builder builder(String type, String name) {
    return new Builder(this, type, name);
  }

  @Override
  public abstract void close();
}
