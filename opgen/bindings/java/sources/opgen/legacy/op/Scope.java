package opgen.legacy.op;

import opgen.internal.Names;
import opgen.legacy.ExecutionEnvironment;
import opgen.legacy.OperationBuilder;

/** Where operations are built, and under which names. */
public final class Scope {
  private final ExecutionEnvironment env;
  private final String prefix;
  private final String name;

  /** The scope whose names have no prefix. */
  public Scope(ExecutionEnvironment env) {
    this(env, "", null);
  }

  private Scope(ExecutionEnvironment env, String prefix, String name) {
    this.env = env;
    this.prefix = prefix;
    this.name = name;
  }

  /** Where operations are built. */
  public ExecutionEnvironment env() {
    return env;
  }

  /** A scope whose names begin with this one's and {@code childScopeName/}. */
  public Scope withSubScope(String childScopeName) {
    return new Scope(env, env.uniqueName(prefix + Names.checked(childScopeName)) + "/", null);
  }

  /** A scope for one operation, which gets this name. */
  public Scope withName(String opName) {
    return new Scope(env, prefix, Names.checked(opName));
  }

  /** A name that nothing has: the scope's own for the next operation, or the default one. */
  public String makeOpName(String defaultName) {
    return env.uniqueName(prefix + (name == null ? defaultName : name));
  }

  /** An operation of the environment that shall be built. */
  public OperationBuilder opBuilder(String type, String defaultName) {
    return env.opBuilder(type, makeOpName(defaultName));
  }
}
