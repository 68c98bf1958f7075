package opgen.legacy;

import opgen.internal.Builder;
import opgen.internal.Given;
import opgen.internal.Step;
import java.util.List;
import java.util.function.Function;

/** An operation that is being put together, over the core's. */
final class CallBuilder implements OperationBuilder, Given.Judge {
  private final Builder builder;
  private final Function<Step, Operation> made;

  CallBuilder(Builder builder, Function<Step, Operation> made) {
    this.builder = builder;
    this.made = made;
  }

  @Override
  public RuntimeException wrong(String argument, String expected, String given) {
    return builder.wrong(argument, expected, given);
  }

  @Override
  public Operation build() {
    return made.apply(builder.build());
  }

  @Override
  public OperationBuilder addInput(Output<?> input) {
    builder.input(input == null ? null : input.step(), input == null ? 0 : input.index());
    return this;
  }

  @Override
  public OperationBuilder addInputList(Output<?>[] inputs) {
    for (Output<?> input : inputs) {
      addInput(input);
    }
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, String value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, byte[] value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, long value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, long[] value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, float value) {
    builder.set(name, (double) value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, float[] value) {
    if (value == null) {
      return this;
    }
    double[] values = new double[value.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = value[i];
    }
    builder.set(name, values);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, boolean value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, Number value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, Boolean value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, List<? extends Number> value) {
    builder.set(name, value);
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, DataType value) {
    builder.element(name, value == null ? null : value.element());
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, Tensor<?> value) {
    builder.value(name, value == null ? null : value.value());
    return this;
  }

  @Override
  public OperationBuilder setAttr(String name, Shape value) {
    builder.shape(name, value == null ? null : value.sizes());
    return this;
  }
}
