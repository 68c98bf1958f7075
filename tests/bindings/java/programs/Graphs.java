import java.util.Arrays;
import java.util.List;
import nn_ops.EagerSession;
import nn_ops.Graph;
import nn_ops.Operand;
import nn_ops.Output;
import nn_ops.Result;
import nn_ops.Session;
import nn_ops.ndarray.Shape;
import nn_ops.ndarray.buffer.DataBuffers;
import nn_ops.op.Ops;
import nn_ops.op.core.Constant;
import nn_ops.op.core.Placeholder;
import nn_ops.op.nn.Conv2d;
import nn_ops.types.TFloat32;
import nn_ops.types.TFloat64;

/** Scopes, sessions, what is refused, and what closing does. */
public final class Graphs {
  private static final List<Long> ONE = Arrays.asList(1L, 1L, 1L, 1L);

  private static Conv2d<TFloat32> next(Ops tf, Operand<TFloat32> x) {
    return tf.nn.conv2d(x, Ops.create(tf.scope().env()).constant(new float[][][][] {{{{1f}}}}), ONE, "SAME");
  }

  private static TFloat32 filled(float value, long... sizes) {
    return TFloat32.tensorOf(Shape.of(sizes), data -> data.scalars().forEach(each -> each.setFloat(value)));
  }

  private static void names(Graph g, Ops tf) {
    String a = tf.constant(1f).op().name();
    String b = tf.constant(1f).op().name();
    String c = tf.withName("c").constant(1).op().name();
    String d = tf.withName("c").constant(1).op().name();
    Ops s = tf.withSubScope("s");
    Check.same(a + " " + b + " " + c + " " + d, "Const Const_1 c c_1");
    Check.same(s.withName("c").constant(1).op().name(), "s/c");
    Check.same(tf.withSubScope("s").withSubScope("t").constant(1).op().name(), "s_1/t/Const");
    Check.same(g.operation("s/c").output(0).toString(), "<Const 's/c:0' shape=[] dtype=DT_INT32>");
    Check.same(g.operation("none"), null);
    Check.thrown(() -> tf.withName("/"), "IllegalArgumentException: no operation can be called '/'");
    Check.thrown(
        () -> g.opBuilder("Const", "c", tf.scope()).setAttr("value", TFloat32.scalarOf(1)).build(),
        "TFInvalidArgumentException: Const: there is a node 'c' in the graph already (node 'c')");
  }

  private static void errors(Graph g, Ops tf) {
    Constant<TFloat32> x = tf.constant(new float[][][][] {{{{1f}}}});
    Check.thrown(
        () -> tf.withName("bad").nn.conv2d(x, x, Arrays.asList(2L, 1L, 1L, 1L), "SAME"),
        "TFInvalidArgumentException: Conv2D: argument 'strides': expected 1 for the batch and channel dimensions, "
            + "given [2, 1, 1, 1] (node 'bad')");
    Check.thrown(
        () -> tf.nn.conv2d(x, null, ONE, "SAME"),
        "TFInvalidArgumentException: Conv2D: argument 'filter': expected a tensor, given nothing (node 'Conv2d')");
    Check.thrown(
        () -> tf.nn.conv2d(x, x, Arrays.asList(1L, null, 1L, 1L), "SAME"),
        "TFInvalidArgumentException: Conv2D: argument 'strides': expected a list of 4, each a 32-bit integer >= 1, "
            + "given [1, null, 1, 1] (node 'Conv2d_1')");
    Check.that(Check.thrown(() -> tf.nn.conv2d(x, x, null, "SAME")).contains("argument 'strides': expected a list"), "");
    Check.that(Check.thrown(() -> tf.nn.conv2d(x, x, ONE, null)).contains("argument 'padding': expected one of"), "");
    Check.thrown(
        () -> tf.withName("zero").nn.conv2d(x, x, ONE, "SAME\0"),
        "TFInvalidArgumentException: Conv2D: argument 'padding': expected one of SAME, VALID, EXPLICIT (did you mean "
            + "'SAME'?), given 'SAME\\x00' (node 'zero')");
    Check.thrown(
        () -> g.opBuilder("Conv2D", "o", tf.scope()).setAttr("stride", ONE),
        "TFInvalidArgumentException: Conv2D: there is no attribute 'stride' of this kind (node 'o')");
    Check.thrown(
        () -> g.opBuilder("Conv2D", "o", tf.scope()).setAttr("strides", 1L),
        "TFInvalidArgumentException: Conv2D: argument 'strides': expected a list of 4, each a 32-bit integer >= 1, given 1 "
            + "(node 'o')");
    Check.thrown(
        () -> g.opBuilder("Conv2D", "o", tf.scope()).addInput(x.asOutput()).build(),
        "TFInvalidArgumentException: Conv2D: expected 2 inputs, given 1 (node 'o')");
    Check.thrown(
        () -> g.opBuilder("Nothing", "o", tf.scope()),
        "TFInvalidArgumentException: there is no op 'Nothing' in this library");
    try (Graph other = new Graph()) {
      Check.thrown(
          () -> next(Ops.create(other), x),
          "TFInvalidArgumentException: Conv2D: argument 'input': expected a result of this graph, given 'Const_2:0' of "
              + "another graph (node 'Conv2d')");
    }
    Check.thrown(
        () -> next(tf, Ops.create().constant(new float[][][][] {{{{1f}}}})),
        "TFInvalidArgumentException: Conv2D: argument 'input': expected a result of this graph, given 'Const:0', which "
            + "has run already: a constant of its tensor can be (node 'Conv2d_4')");
    Check.thrown(
        () -> next(Ops.create(), x),
        "TFInvalidArgumentException: Conv2D: argument 'input': expected a tensor that is there, given 'Const_2:0' of a "
            + "graph, which a session runs");
    Check.thrown(
        () -> Ops.create().placeholder(TFloat32.class),
        "TFInvalidArgumentException: Placeholder: cannot be run at once: a session feeds it");
    Check.thrown(() -> x.asTensor(), "IllegalStateException: 'Const_2:0' is part of a graph: fetch it with a session");
    Check.thrown(
        () -> x.asOutput().expect(TFloat64.class), "IllegalArgumentException: Const_2:0 is of type TFloat32, not TFloat64");
    Check.thrown(
        () -> new Conv2d<TFloat32>(x.op()), "IllegalArgumentException: 'Const_2' is a call of Const, not of Conv2D");
  }

  private static void feeds(Graph g, Ops tf, Session session) throws Exception {
    Placeholder<TFloat32> x = tf.withName("x").placeholder(TFloat32.class, Placeholder.shape(Shape.of(1, -1, 2, 1)));
    Conv2d<TFloat32> y = next(tf.withName("y"), x);
    Conv2d<TFloat32> z = next(tf.withName("z"), y);
    Placeholder<TFloat32> free = tf.withName("free").placeholder(TFloat32.class);
    Conv2d<TFloat32> late = next(tf.withName("late"), free);
    String unfed = "TFInvalidArgumentException: Placeholder: expected float32[1, ?, 2, 1] to be fed, given ";
    Check.thrown(() -> session.runner().fetch(y).run(), unfed + "nothing (node 'x')");
    Check.thrown(
        () -> session.runner().feed(x, filled(1, 1, 2, 3, 1)).fetch(y).run(), unfed + "float32[1, 2, 3, 1] (node 'x')");
    Check.thrown(
        () -> session.runner().feed("x", TFloat64.scalarOf(3)).fetch("y").run(), unfed + "float64[] (node 'x')");
    Check.thrown(
        () -> session.runner().feed(free, TFloat32.scalarOf(3)).fetch(late).run(),
        "TFInvalidArgumentException: Conv2D: argument 'input': expected a tensor of rank 4, given shape [] (node 'late')");
    Check.thrown(
        () -> session.runner().fetch(Ops.create(new Graph()).constant(1f)),
        "TFInvalidArgumentException: 'Const:0' of another graph can be neither fed nor fetched here");
    Check.thrown(() -> session.runner().feed(x, null), unfed + "nothing (node 'x')");
    Check.thrown(
        () -> session.runner().fetch("nowhere:0"), "IllegalArgumentException: there is no output 'nowhere:0' in the graph");
    Result closed;
    // What is fed is not worked out: y is given, so x need not be.
    try (Result r = session.runner().feed(y, filled(7, 1, 1, 1, 1)).fetch(z).fetch(y).fetch("z").run()) {
      Check.same(((TFloat32) r.get(0)).getFloat(0, 0, 0, 0), 7f);
      Check.same(((TFloat32) r.get("y:0").get()).getFloat(0, 0, 0, 0), 7f);
      Check.same(r.size() + " " + r.keySet(), "3 [z:0, y:0]");
      closed = r;
    }
    Result gone = closed;
    Check.thrown(() -> gone.get(0), "IllegalStateException: the result is closed");
    try (Result r = session.runner().feed("x:0", filled(7, 1, 1, 2, 1)).fetch("x").addTarget(z).run()) {
      Check.same(r.get(0).shape(), Shape.of(1, 1, 2, 1));
    }
    session.run(tf.constant(1f));
  }

  private static void deep(Graph g, Ops tf, Session session) {
    Operand<TFloat32> last = tf.constant(new float[][][][] {{{{5f}}}});
    Operand<TFloat32> filter = tf.constant(new float[][][][] {{{{1f}}}});
    for (int i = 0; i < 3000; i++) {
      last = tf.nn.conv2d(last, filter, ONE, "SAME");
    }
    try (Result r = session.runner().fetch(last).run()) {
      Check.same(((TFloat32) r.get(0)).getFloat(0, 0, 0, 0), 5f);
    }
  }

  private static void closing() {
    TFloat32 kept;
    Output<TFloat32> made;
    try (EagerSession session = EagerSession.create()) {
      Ops tf = Ops.create(session);
      made = next(tf, tf.constantOf(filled(3, 1, 2, 2, 1))).asOutput();
      kept = made.asTensor();
      Check.same(kept.getFloat(0, 1, 1, 0), 3f);
    }
    Check.thrown(() -> kept.getFloat(0, 1, 1, 0), "IllegalStateException: the tensor is closed");
    Check.thrown(() -> next(Ops.create(), made), "IllegalStateException: the tensor is closed");
    TFloat32 x = filled(2, 1, 1, 1, 1);
    Constant<TFloat32> c = Ops.create().constantOf(x);
    x.close();
    x.close();
    Check.same(next(Ops.create(), c).asTensor().getFloat(0, 0, 0, 0), 2f);
    Check.thrown(() -> Ops.create().constantOf(x), "IllegalStateException: the tensor is closed");
    Check.thrown(() -> x.copyTo(DataBuffers.of(new float[1])), "IllegalStateException: the tensor is closed");
    Graph g = new Graph();
    Session session = new Session(g);
    Operand<TFloat32> y = next(Ops.create(g), Ops.create(g).constantOf(filled(2, 1, 1, 1, 1)));
    try (Result r = session.runner().fetch(y).run()) {
      g.close();
      Check.same(((TFloat32) r.get(0)).getFloat(0, 0, 0, 0), 2f);
    }
    Check.thrown(() -> session.runner().fetch(y).run(), "IllegalStateException: the graph is closed");
    Check.thrown(() -> session.runner().feed(y, x).fetch(y).run(), "IllegalStateException: the graph is closed");
    Check.thrown(() -> session.runner().run(), "IllegalStateException: the graph is closed");
    Check.thrown(() -> Ops.create(g).constant(1f), "IllegalStateException: the graph is closed");
    session.close();
    Check.thrown(() -> session.runner().fetch(y).run(), "IllegalStateException: the session is closed");
  }

  private static void memory() throws Exception {
    Ops tf = Ops.create();
    int[] sizes = {1, 1 << 18, 1 << 18, 1 << 8};
    List<Long> strides = Arrays.asList(1L, 1L << 17, 1L << 17, 1L);
    Check.thrown(
        () -> tf.nn.conv2dBackpropInput(
            tf.constant(sizes), tf.constantOf(filled(1, 1, 1, 1 << 8, 1)), tf.constantOf(filled(1, 1, 2, 2, 1)), strides, "SAME"),
        "TFResourceExhaustedException: Conv2DBackpropInput: not enough memory for the results");
    // What could not be had does not count: tensors that nobody holds are found as before.
    Check.thrown(
        () -> TFloat32.tensorOf(Shape.of(1L << 40, 1L << 8)),
        "TFResourceExhaustedException: no memory for a tensor of 1125899906842624 bytes");
    long begin = Check.kilobytes();
    for (int i = 0; i < 2000; i++) {
      TFloat32.tensorOf(Shape.of(1 << 18));
    }
    Check.that(Check.kilobytes() - begin < 800_000, "memory grows");
  }

  public static void main(String[] args) throws Exception {
    try (Graph g = new Graph()) {
      names(g, Ops.create(g));
    }
    try (Graph g = new Graph()) {
      Ops tf = Ops.create(g);
      tf.constant(0);
      tf.constant(0);
      errors(g, tf);
    }
    try (Graph g = new Graph();
        Session session = new Session(g)) {
      Ops tf = Ops.create(g);
      feeds(g, tf, session);
      deep(g, tf, session);
    }
    closing();
    memory();
  }
}
