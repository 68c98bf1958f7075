package opgen;

import opgen.types.family.TType;

/** A call of an op: recorded in a graph, or run already. */
public interface Operation {
  /** Its name. */
  String name();

  /** The op that it is a call of. */
  String type();

  /** Where it was built. */
  ExecutionEnvironment env();

  /** The number of its results. */
  int numOutputs();

  /** Results in a row. */
  Output<?>[] outputList(int idx, int length);

  /** A result, of the type that the caller says. */
  <T extends TType> Output<T> output(int idx);
}
