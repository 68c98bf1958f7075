package opgen.op;

import opgen.ExecutionEnvironment;
import opgen.OperationBuilder;

/** Where operations are built, and under which names. */
public interface Scope {
  /** Where operations are built. */
  ExecutionEnvironment env();

  /** A scope whose names begin with this one's and {@code childScopeName/}. */
  Scope withSubScope(String childScopeName);

  /** A scope for one operation, which gets this name. */
  Scope withName(String opName);

  /** A name that nothing has: the scope's own for the next operation, or the default one. */
  String makeOpName(String defaultName);

  /** An operation of the environment that shall be built. */
  default OperationBuilder opBuilder(String type, String name) {
    return env().opBuilder(type, makeOpName(name), this);
  }

  /** Whether an operation may have a name. */
  static boolean isValidOpName(String name) {
    return OpScope.valid(name);
  }
}
