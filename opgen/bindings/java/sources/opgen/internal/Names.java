package opgen.internal;

import java.util.regex.Pattern;

/** Names of operations. */
public final class Names {
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9.][A-Za-z0-9_.\\-]*");

  private Names() {}

  /** Whether an operation may have a name. */
  public static boolean valid(String name) {
    return name != null && NAME.matcher(name).matches();
  }

  /** The name; throws if no operation may have it. */
  public static String checked(String name) {
    if (!valid(name)) {
      throw new IllegalArgumentException("no operation can be called '" + name + "'");
    }
    return name;
  }
}
