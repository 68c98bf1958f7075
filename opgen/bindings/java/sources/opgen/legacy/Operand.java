package opgen.legacy;

/**
 * What an operation reads: a result of another.
 *
 * @param <T> stands for the type of the elements
 */
public interface Operand<T> {
  /** The result. */
  Output<T> asOutput();
}
