import java.util.List;
import nn_ops.Graph;
import nn_ops.Operand;
import nn_ops.Result;
import nn_ops.Session;
import nn_ops.ndarray.Shape;
import nn_ops.op.Ops;
import nn_ops.op.core.Placeholder;
import nn_ops.op.nn.Conv2d;
import nn_ops.op.nn.Conv2dBackpropInputV2;
import nn_ops.types.TFloat32;

/** What a graph knows of results while sizes of what it is fed are open. */
public final class Partial {
  private static final List<Long> ONE = List.of(1L, 1L, 1L, 1L);
  private static final List<Long> TWO = List.of(1L, 2L, 2L, 1L);

  private static Placeholder<TFloat32> open(Ops tf, long... sizes) {
    return tf.placeholder(TFloat32.class, Placeholder.shape(Shape.of(sizes)));
  }

  private static String shape(Operand<?> x) {
    return x.asOutput().shape().toString();
  }

  public static void main(String[] args) {
    try (Graph graph = new Graph();
        Session session = new Session(graph)) {
      Ops tf = Ops.create(graph);
      Placeholder<TFloat32> images = open(tf, -1, 6, 7, 3);
      Placeholder<TFloat32> w = open(tf, 3, 3, 3, 8);
      Conv2d<TFloat32> y = tf.nn.conv2d(images, w, TWO, "SAME");
      Check.same(shape(y), "[-1, 3, 4, 8]");
      Check.same(shape(tf.nn.conv2d(open(tf, 2, -1, 7, 3), w, TWO, "VALID")), "[2, -1, 3, 8]");
      Check.same(shape(tf.nn.conv2d(open(tf, -1, 3, 6, 7), w, List.of(1L, 1L, 2L, 2L), "SAME", Conv2d.dataFormat("NCHW"))),
          "[-1, 8, 3, 4]");
      Check.same(shape(tf.nn.conv2d(open(tf, 2, 3, 6, -1), w, List.of(1L, 1L, 2L, 2L), "SAME", Conv2d.dataFormat("NCHW"))),
          "[2, 8, 3, -1]");
      // How many groups there are is not known, nor then how many channels come out of a filter of open ones.
      Check.same(shape(tf.nn.conv2d(images, open(tf, 3, 3, -1, 8), ONE, "SAME")), "[-1, 6, 7, -1]");
      Check.same(shape(tf.nn.conv2d(images, open(tf, 3, 3, 3, -1), ONE, "SAME")), "[-1, 6, 7, -1]");
      Check.same(shape(tf.nn.conv2d(images, open(tf, -1, 3, 3, 8), ONE, "VALID")), "[-1, -1, 5, 8]");
      Check.same(shape(tf.nn.conv2d(y, open(tf, 1, 1, 8, 4), ONE, "SAME")), "[-1, 3, 4, 4]");
      // What is open may have any size, also one for which the call is wrong; then that is said when it runs.
      Check.same(shape(tf.nn.conv2d(open(tf, 2, 6, 7, -1), w, ONE, "SAME")), "[2, 6, 7, -1]");
      Check.same(shape(tf.nn.conv2d(tf.placeholder(TFloat32.class), w, ONE, "SAME")), "null");
      Check.same(shape(tf.nn.conv2d(open(tf, -1, 6, 7, 5), w, ONE, "SAME")), "null");
      Conv2dBackpropInputV2<TFloat32> back = tf.nn.conv2dBackpropInputV2(images, w, y, TWO, "SAME");
      Check.same(shape(back), "[-1, 6, 7, 3]");
      try (TFloat32 x = TFloat32.tensorOf(Shape.of(5, 6, 7, 3));
          TFloat32 f = TFloat32.tensorOf(Shape.of(3, 3, 3, 8));
          Result r = session.runner().feed(images, x).feed(w, f).fetch(y).fetch(back).run()) {
        Check.same(r.get(0).shape() + " " + r.get(1).shape(), "[5, 3, 4, 8] [5, 6, 7, 3]");
      }
      try (TFloat32 wrong = TFloat32.tensorOf(Shape.of(5, 3, 5, 8))) {
        Check.thrown(() -> session.runner().feed(y, wrong).fetch(y).run(),
            "TFInvalidArgumentException: Conv2D: expected float32[?, 3, 4, 8] to be fed, given float32[5, 3, 5, 8] "
                + "(node 'Conv2d')");
      }
    }
  }
}
