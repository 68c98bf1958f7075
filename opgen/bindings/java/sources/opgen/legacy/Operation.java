package opgen.legacy;

/** A call of an op: recorded in a graph, or run already. */
public interface Operation {
  /** Its name. */
  String name();

  /** The op that it is a call of. */
  String type();

  /** The number of its results. */
  int numOutputs();

  /** Results in a row. */
  Output<?>[] outputList(int idx, int length);

  /** A result, of the type that the caller says. */
  <T> Output<T> output(int idx);
}
