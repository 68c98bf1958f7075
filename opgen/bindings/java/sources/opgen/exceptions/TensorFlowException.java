package opgen.exceptions;

/** Something went wrong that no argument is to blame for. */
public class TensorFlowException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** With a message. */
  public TensorFlowException(String message) {
    super(message);
  }

  /** With a message and what was behind it. */
  public TensorFlowException(String message, Throwable cause) {
    super(message, cause);
  }
}
