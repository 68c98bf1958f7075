package opgen;

import opgen.op.Scope;

/** Where operations are built: recorded in a {@link Graph}, or run at once in an {@link EagerSession}. */
public interface ExecutionEnvironment {
  /** The two kinds of environments. */
  enum Types {
    /** Operations are recorded. */
    GRAPH,
    /** Operations run when they are built. */
    EAGER
  }

  /**
   * An operation that shall be built.
   *
   * @param type the op
   * @param name the operation's name
   * @param scope the scope in which it is built
   */
  OperationBuilder opBuilder(String type, String name, Scope scope);

  /** Which of the two kinds it is. */
  Types environmentType();

  /** Whether operations run when they are built. */
  default boolean isEager() {
    return environmentType() == Types.EAGER;
  }

  /** Whether operations are recorded. */
  default boolean isGraph() {
    return environmentType() == Types.GRAPH;
  }

  /** The scope whose names have no prefix. */
  Scope baseScope();

  /**
   * The name, or the first of NAME_1, NAME_2... that is free here.
   *
   * @return a name that is free
   */
  String uniqueName(String name);
}
