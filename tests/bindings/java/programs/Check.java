import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Objects;

/** Checks of test programs. */
final class Check {
  private Check() {}

  /** What may throw. */
  interface Task {
    void run() throws Exception;
  }

  static void that(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  static void same(Object found, Object expected) {
    if (!Objects.deepEquals(found, expected)) {
      throw new AssertionError("found\n  " + found + "\nexpected\n  " + expected);
    }
  }

  /** What a call throws: the class, a colon and the message. */
  static String thrown(Task call) {
    try {
      call.run();
    } catch (Exception e) {
      return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
    return "nothing";
  }

  /** That a call throws this. */
  static void thrown(Task call, String expected) {
    same(thrown(call), expected);
  }

  /** The memory of this process that is in use. */
  static long kilobytes() throws Exception {
    for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
      if (line.startsWith("VmRSS")) {
        return Long.parseLong(line.replaceAll("\\D", ""));
      }
    }
    return 0;
  }
}
