package opgen.legacy;

import opgen.internal.Step;

/** An operation over what the core has built. */
class AbstractOperation implements Operation {
  private final Step step;

  AbstractOperation(Step step) {
    this.step = step;
  }

  Step step() {
    return step;
  }

  @Override
  public String name() {
    return step.name();
  }

  @Override
  public String type() {
    return step.type();
  }

  @Override
  public int numOutputs() {
    return step.outputs();
  }

  @Override
  public Output<?>[] outputList(int idx, int length) {
    Output<?>[] all = new Output<?>[length];
    for (int i = 0; i < length; i++) {
      all[i] = output(idx + i);
    }
    return all;
  }

  @Override
  public <T> Output<T> output(int idx) {
    if (idx < 0 || idx >= numOutputs()) {
      throw new IndexOutOfBoundsException("operation '" + name() + "' has no output " + idx);
    }
    return new Output<>(this, idx);
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(step);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AbstractOperation && ((AbstractOperation) other).step == step;
  }

  @Override
  public String toString() {
    return "<" + type() + " '" + name() + "'>";
  }
}
