package opgen.legacy.op;

import opgen.legacy.Operand;
import opgen.legacy.Output;
import java.util.ArrayList;
import java.util.List;

/** What operations read. */
public final class Operands {
  private Operands() {}

  /** The results that operands are. */
  public static Output<?>[] asOutputs(Iterable<? extends Operand<?>> inputs) {
    List<Output<?>> all = new ArrayList<>();
    for (Operand<?> each : inputs) {
      all.add(each.asOutput());
    }
    return all.toArray(new Output<?>[0]);
  }
}
