package opgen.op;

import opgen.ExecutionEnvironment;
import opgen.Operation;

/** A call of an op. */
public interface Op {
  /** The operation. */
  Operation op();

  /** Where it was built. */
  default ExecutionEnvironment env() {
    return op().env();
  }
}
