package opgen.internal;

import opgen.exceptions.TFInvalidArgumentException;

/** What callers have given, as messages show it, and what they must give. */
public final class Given {
  private static final int SHOWN = 80;

  private Given() {}

  /** What refuses an argument: the builder of an operation, which says of which one. */
  public interface Judge {
    /** The exception for an argument. */
    RuntimeException wrong(String argument, String expected, String given);
  }

  /** The exception for an argument of a call. */
  public static TFInvalidArgumentException wrong(String call, String argument, String expected, String given) {
    return new TFInvalidArgumentException(message(call, argument, expected, given));
  }

  static String message(String call, String argument, String expected, String given) {
    return call + ": argument '" + argument + "': expected " + expected + ", given " + given;
  }

  /** The value, which must be there; {@code expected} says what it is in messages. */
  public static <T> T checked(T value, String call, String argument, String expected) {
    if (value == null) {
      throw wrong(call, argument, expected, "null");
    }
    return value;
  }

  /** One of the options of a call, which must be there. */
  public static <T> T option(T value, Object builder) {
    if (value == null) {
      String expected = "what the class's methods give";
      throw builder instanceof Judge
          ? ((Judge) builder).wrong("options", expected, "null")
          : wrong("operation", "options", expected, "null");
    }
    return value;
  }

  /** A value in a message: a long one is cut short. */
  static String shown(Object value) {
    String text = String.valueOf(value);
    return text.length() <= SHOWN ? text : text.substring(0, SHOWN - 3) + "...";
  }
}
