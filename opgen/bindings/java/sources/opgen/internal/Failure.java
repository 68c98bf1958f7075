package opgen.internal;

import opgen.exceptions.TFFailedPreconditionException;
import opgen.exceptions.TFInvalidArgumentException;
import opgen.exceptions.TFResourceExhaustedException;
import opgen.exceptions.TFUnimplementedException;
import opgen.exceptions.TensorFlowException;
import java.nio.charset.StandardCharsets;

/** What the native library says of a call that failed, as an exception. */
final class Failure {
  private Failure() {}

  /** Whether a call has failed for lack of memory. */
  static boolean isLackOfMemory(byte[] reply) {
    return reply != null && reply[0] == 2;
  }

  /**
   * Throws if a call has failed.
   *
   * @param reply what {@link Native#run} gave
   * @param where follows the message
   */
  static void check(byte[] reply, String where) {
    if (reply != null) {
      throw of(reply[0], new String(reply, 1, reply.length - 1, StandardCharsets.UTF_8) + where);
    }
  }

  private static RuntimeException of(int status, String message) {
    switch (status) {
      case 1:
        return new TFInvalidArgumentException(message);
      case 2:
        return new TFResourceExhaustedException(message);
      case 3:
        return new TFUnimplementedException(message);
      case 5:
        return new TFFailedPreconditionException(message);
      default:
        return new TensorFlowException(message);
    }
  }
}
