package opgen;

import opgen.internal.Eager;
import opgen.op.OpScope;
import opgen.op.Scope;

/** Runs operations when they are built.  Any number of threads may do so. */
public final class EagerSession implements ExecutionEnvironment, AutoCloseable {
  private static EagerSession defaultSession;

  private final Eager core = new Eager();
  private final Scope baseScope = new OpScope(this);

  private EagerSession() {}

  /** Where TensorFlow copies tensors between devices; here there is one device. */
  public enum DevicePlacementPolicy {
    /** A tensor of another device is an error. */
    EXPLICIT,
    /** It is copied, with a warning. */
    WARN,
    /** It is copied. */
    SILENT,
    /** It is copied if it is of integers. */
    SILENT_FOR_INT32
  }

  /** What can be said of a session: nothing has an effect. */
  public static final class Options {
    private Options() {}

    /** Accepted for source compatibility; it has no effect. */
    public Options async(boolean value) {
      return this;
    }

    /** Accepted for source compatibility; it has no effect. */
    public Options devicePlacementPolicy(DevicePlacementPolicy value) {
      return this;
    }

    /** A session. */
    public EagerSession build() {
      return new EagerSession();
    }
  }

  /** A session; when it is closed, the tensors of its operations are, too. */
  public static EagerSession create() {
    return new EagerSession();
  }

  /** What can be said of a session. */
  public static Options options() {
    return new Options();
  }

  /**
   * Makes the session that {@link #getDefault} gives; throws if there is one.
   *
   * @return the session
   */
  public static synchronized EagerSession initDefault(Options options) {
    if (defaultSession != null) {
      throw new IllegalStateException("there is a default session already");
    }
    defaultSession = options.build();
    return defaultSession;
  }

  /** The session that lasts as long as the program. */
  public static synchronized EagerSession getDefault() {
    return defaultSession == null ? initDefault(options()) : defaultSession;
  }

  @Override
  public OperationBuilder opBuilder(String type, String name, Scope scope) {
    return new CallBuilder(core.builder(type, name), step -> new EagerOperation(this, step));
  }

  @Override
  public Types environmentType() {
    return Types.EAGER;
  }

  @Override
  public Scope baseScope() {
    return baseScope;
  }

  @Override
  public String uniqueName(String name) {
    return name;
  }

  /** Closes the tensors of all operations; throws for the default session, which cannot be closed. */
  @Override
  public void close() {
    synchronized (EagerSession.class) {
      if (this == defaultSession) {
        throw new IllegalStateException("the default session cannot be closed");
      }
    }
    core.close();
  }
}
