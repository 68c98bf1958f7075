package opgen.legacy;

/** Where operations are built: recorded in a {@link Graph}, or run at once in an {@link EagerSession}. */
public interface ExecutionEnvironment {
  /**
   * An operation that shall be built.
   *
   * @param type the op
   * @param name the operation's name
   */
  OperationBuilder opBuilder(String type, String name);

  /**
   * The name, or the first of NAME_1, NAME_2... that is free here.
   *
   * @return a name that is free
   */
  String uniqueName(String name);
}
