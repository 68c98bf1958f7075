package opgen.legacy;

import java.util.List;

/** Puts an operation together.  Not for several threads at once. */
public interface OperationBuilder {
  /**
   * Records or runs the operation.
   *
   * @return the operation
   */
  Operation build();

  /** Adds an input. */
  OperationBuilder addInput(Output<?> input);

  /** Adds inputs. */
  OperationBuilder addInputList(Output<?>[] inputs);

  /** Sets a word; null leaves it as it is. */
  OperationBuilder setAttr(String name, String value);

  /** Sets a word, in UTF-8; null leaves it as it is. */
  OperationBuilder setAttr(String name, byte[] value);

  /** Sets an integer. */
  OperationBuilder setAttr(String name, long value);

  /** Sets integers; null leaves them as they are. */
  OperationBuilder setAttr(String name, long[] value);

  /** Sets a number. */
  OperationBuilder setAttr(String name, float value);

  /** Sets numbers; null leaves them as they are. */
  OperationBuilder setAttr(String name, float[] value);

  /** Sets true or false. */
  OperationBuilder setAttr(String name, boolean value);

  /** Sets an integer or a number; null leaves it as it is. */
  OperationBuilder setAttr(String name, Number value);

  /** Sets true or false; null leaves it as it is. */
  OperationBuilder setAttr(String name, Boolean value);

  /** Sets integers or numbers; null leaves them as they are. */
  OperationBuilder setAttr(String name, List<? extends Number> value);

  /** Sets a type. */
  OperationBuilder setAttr(String name, DataType value);

  /** Sets the value of a constant. */
  OperationBuilder setAttr(String name, Tensor<?> value);

  /** Sets what is known of a shape; null is nothing. */
  OperationBuilder setAttr(String name, Shape value);
}
