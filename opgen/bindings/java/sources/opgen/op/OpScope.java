package opgen.op;

import opgen.ExecutionEnvironment;
import opgen.internal.Names;

/** The scopes that environments give. */
public final class OpScope implements Scope {
  private final ExecutionEnvironment env;
  private final String prefix;
  private final String name;

  /** The scope whose names have no prefix. */
  public OpScope(ExecutionEnvironment env) {
    this(env, "", null);
  }

  private OpScope(ExecutionEnvironment env, String prefix, String name) {
    this.env = env;
    this.prefix = prefix;
    this.name = name;
  }

  @Override
  public ExecutionEnvironment env() {
    return env;
  }

  @Override
  public Scope withSubScope(String childScopeName) {
    return new OpScope(env, env.uniqueName(prefix + Names.checked(childScopeName)) + "/", null);
  }

  @Override
  public Scope withName(String opName) {
    return new OpScope(env, prefix, Names.checked(opName));
  }

  @Override
  public String makeOpName(String defaultName) {
    return env.uniqueName(prefix + (name == null ? defaultName : name));
  }

  static boolean valid(String name) {
    return Names.valid(name);
  }

  @Override
  public String toString() {
    return "scope '" + prefix + "'";
  }
}
