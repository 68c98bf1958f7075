package opgen.internal;

/** An operation that has run. */
final class Done extends Step {
  private final Value[] values;

  Done(Environment environment, String type, String name, Value[] values) {
    super(environment, type, name);
    this.values = values;
  }

  @Override
  public int outputs() {
    return values.length;
  }

  @Override
  public Element element(int output) {
    return values[output].element();
  }

  @Override
  public long[] shape(int output) {
    return values[output].shape();
  }

  @Override
  public Value value(int output) {
    return values[output];
  }
}
