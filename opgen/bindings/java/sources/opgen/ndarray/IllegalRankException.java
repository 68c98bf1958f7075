package opgen.ndarray;

/** Thrown where an array has another number of dimensions than is asked for. */
public class IllegalRankException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  /** With a message. */
  public IllegalRankException(String message) {
    super(message);
  }
}
