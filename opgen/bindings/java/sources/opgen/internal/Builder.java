package opgen.internal;

import opgen.exceptions.TFInvalidArgumentException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** An operation that is being put together.  Not for several threads at once. */
public final class Builder implements Given.Judge {
  /** The type of constants. */
  public static final String CONSTANT = "Const";
  /** The type of what a run is fed. */
  public static final String FED = "Placeholder";

  final Environment environment;
  final String type;
  final String name;
  /** Null for a constant, and for what is fed. */
  final OpDef op;
  Value constant;
  Element element;
  long[] shape;
  private Step[] steps = new Step[4];
  private int[] indices = new int[4];
  private int count;
  private final long[][] attributes;

  Builder(Environment environment, String type, String name) {
    this.environment = environment;
    this.type = type;
    this.name = name;
    op = OpTable.find(type);
    attributes = op == null ? null : new long[op.attributes.length][];
    if (op == null && !type.equals(CONSTANT) && !type.equals(FED)) {
      throw new TFInvalidArgumentException("there is no op '" + type + "' in this library");
    }
  }

  /** Adds an input; null leaves it missing. */
  public void input(Step step, int index) {
    if (count == steps.length) {
      steps = Arrays.copyOf(steps, 2 * count);
      indices = Arrays.copyOf(indices, 2 * count);
    }
    if (step != null) {
      step.checkOutput(index);
    }
    steps[count] = step;
    indices[count++] = index;
  }

  /** Sets the value of a constant. */
  public void value(String attribute, Value given) {
    if (!type.equals(CONSTANT) || !attribute.equals("value")) {
      throw unknown(attribute);
    }
    if (given == null) {
      throw wrong(attribute, "a tensor", "null");
    }
    constant = given;
  }

  /** Sets the type of a constant, or of what is fed. */
  public void element(String attribute, Element given) {
    if (op != null || !attribute.equals("dtype")) {
      throw unknown(attribute);
    }
    if (given == null) {
      throw wrong(attribute, "a type", "null");
    }
    element = given;
  }

  /** Sets what is known of the shape of what is fed; null for nothing. */
  public void shape(String attribute, long[] given) {
    if (!type.equals(FED) || !attribute.equals("shape")) {
      throw unknown(attribute);
    }
    shape = given;
  }

  /** Sets an integer. */
  public void set(String attribute, long given) {
    attributes[place(attribute, OpDef.Kind.INT, given)] = new long[] {1, given};
  }

  /** Sets a number. */
  public void set(String attribute, double given) {
    attributes[place(attribute, OpDef.Kind.FLOAT, given)] = new long[] {1, Double.doubleToRawLongBits(given)};
  }

  /** Sets true or false. */
  public void set(String attribute, boolean given) {
    attributes[place(attribute, OpDef.Kind.BOOL, given)] = new long[] {1, given ? 1 : 0};
  }

  /** Sets a word; null leaves it as it is. */
  public void set(String attribute, String given) {
    if (given != null) {
      set(attribute, given.getBytes(StandardCharsets.UTF_8));
    }
  }

  /** Sets a word: its bytes, the first in the lowest place, and a zero; null leaves it as it is. */
  public void set(String attribute, byte[] given) {
    if (given == null) {
      return;
    }
    long[] words = new long[1 + (given.length + 8) / 8];
    words[0] = given.length;
    for (int i = 0; i < given.length; i++) {
      words[1 + i / 8] |= (given[i] & 0xffL) << 8 * (i % 8);
    }
    attributes[place(attribute, OpDef.Kind.WORD, new String(given, StandardCharsets.UTF_8))] = words;
  }

  /** Sets a list of integers; null leaves it as it is. */
  public void set(String attribute, long[] given) {
    if (given != null) {
      long[] words = new long[1 + given.length];
      words[0] = given.length;
      System.arraycopy(given, 0, words, 1, given.length);
      attributes[place(attribute, OpDef.Kind.INTS, Arrays.toString(given))] = words;
    }
  }

  /** Sets a list of numbers; null leaves it as it is. */
  public void set(String attribute, double[] given) {
    if (given != null) {
      long[] words = new long[1 + given.length];
      words[0] = given.length;
      for (int i = 0; i < given.length; i++) {
        words[1 + i] = Double.doubleToRawLongBits(given[i]);
      }
      attributes[place(attribute, OpDef.Kind.FLOATS, Arrays.toString(given))] = words;
    }
  }

  /** Sets an integer or a number, as the attribute is one; null leaves it as it is. */
  public void set(String attribute, Number given) {
    if (given != null) {
      if (find(attribute).kind == OpDef.Kind.INT) {
        set(attribute, given.longValue());
      } else {
        set(attribute, given.doubleValue());
      }
    }
  }

  /** Sets true or false; null leaves it as it is. */
  public void set(String attribute, Boolean given) {
    if (given != null) {
      set(attribute, given.booleanValue());
    }
  }

  /** Sets a list of integers or numbers, as the attribute is one; null leaves it as it is. */
  public void set(String attribute, List<? extends Number> given) {
    if (given == null) {
      return;
    }
    boolean integers = find(attribute).kind == OpDef.Kind.INTS;
    long[] words = new long[1 + given.size()];
    int at = 0;
    words[at++] = given.size();
    for (Number each : given) {
      if (each == null) {
        throw refused(find(attribute), given);
      }
      words[at++] = integers ? each.longValue() : Double.doubleToRawLongBits(each.doubleValue());
    }
    attributes[place(attribute, integers ? OpDef.Kind.INTS : OpDef.Kind.FLOATS, given)] = words;
  }

  /** The operation: recorded, or with its results. */
  public Step build() {
    if (op == null) {
      if (type.equals(CONSTANT) ? constant == null : element == null) {
        throw wrong("attribute '" + (type.equals(CONSTANT) ? "value" : "dtype") + "' is missing");
      }
      if (constant != null && element != null && element != constant.element()) {
        throw wrong("the value is of type " + constant.element().shown() + ", not " + element.shown());
      }
    } else if (count != op.inputs.length) {
      throw wrong("expected " + op.inputs.length + " inputs, given " + count);
    }
    for (int i = 0; i < count; i++) {
      if (steps[i] == null) {
        throw wrong(op.inputs[i], "a tensor", "nothing");
      }
    }
    return environment.build(this);
  }

  int inputs() {
    return count;
  }

  Step input(int i) {
    return steps[i];
  }

  int index(int i) {
    return indices[i];
  }

  /** An input as messages show it: "'NAME:INDEX'". */
  String said(int i) {
    return "'" + steps[i].name() + ":" + indices[i] + "'";
  }

  int[] indices() {
    return Arrays.copyOf(indices, count);
  }

  Call call() {
    return new Call(op, attributes);
  }

  @Override
  public TFInvalidArgumentException wrong(String argument, String expected, String given) {
    return new TFInvalidArgumentException(Given.message(type, argument, expected, given) + where());
  }

  TFInvalidArgumentException wrong(String why) {
    return new TFInvalidArgumentException(type + ": " + why + where());
  }

  private String where() {
    return environment.eager() ? "" : " (node '" + name + "')";
  }

  private OpDef.Attribute find(String attribute) {
    int place = op == null ? -1 : op.attribute(attribute);
    if (place < 0) {
      throw unknown(attribute);
    }
    return op.attributes[place];
  }

  private int place(String attribute, OpDef.Kind kind, Object given) {
    if (find(attribute).kind != kind) {
      throw refused(find(attribute), given);
    }
    return op.attribute(attribute);
  }

  private TFInvalidArgumentException refused(OpDef.Attribute attribute, Object given) {
    return wrong(attribute.argument, attribute.expected, Given.shown(given));
  }

  private TFInvalidArgumentException unknown(String attribute) {
    return wrong("there is no attribute '" + attribute + "' of this kind");
  }
}
