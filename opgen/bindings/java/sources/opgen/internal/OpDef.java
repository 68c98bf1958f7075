package opgen.internal;

/** What is known of an op before it is called. */
final class OpDef {
  /** The kinds of attributes. */
  enum Kind {
    INT, FLOAT, BOOL, WORD, INTS, FLOATS
  }

  /** An attribute by one of its spellings; {@code argument} and {@code expected} are for messages. */
  static final class Attribute {
    final String name;
    final Kind kind;
    final String argument;
    final String expected;

    Attribute(String name, Kind kind, String argument, String expected) {
      this.name = name;
      this.kind = kind;
      this.argument = argument;
      this.expected = expected;
    }
  }

  final String name;
  final int number;
  final String[] inputs;
  /** For each input, whether its elements count for the shapes of the results. */
  final boolean[] sizes;
  /** For each output, the input that has its type, or -1 and {@link #types}. */
  final int[] typedBy;
  final Element[] types;
  final Attribute[] attributes;

  OpDef(
      String name,
      int number,
      String[] inputs,
      boolean[] sizes,
      int[] typedBy,
      Element[] types,
      Attribute... attributes) {
    this.name = name;
    this.number = number;
    this.inputs = inputs;
    this.sizes = sizes;
    this.typedBy = typedBy;
    this.types = types;
    this.attributes = attributes;
  }

  int outputs() {
    return typedBy.length;
  }

  /** The place of an attribute; -1 if there is none. */
  int attribute(String attribute) {
    for (int i = 0; i < attributes.length; i++) {
      if (attributes[i].name.equals(attribute)) {
        return i;
      }
    }
    return -1;
  }
}
