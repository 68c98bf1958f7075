import java.util.Arrays;
import java.util.List;
import nn_ops.EagerSession;
import nn_ops.Graph;
import nn_ops.Result;
import nn_ops.Session;
import nn_ops.ndarray.Shape;
import nn_ops.op.Ops;
import nn_ops.op.core.Constant;
import nn_ops.op.core.Placeholder;
import nn_ops.op.nn.Conv2d;
import nn_ops.types.TFloat32;

/** Prints by how many kilobytes the process grows in a million calls, after the first hundred thousand. */
public final class Endless {
  private static final List<Long> ONE = Arrays.asList(1L, 1L, 1L, 1L);

  public static void main(String[] args) throws Exception {
    int count = Integer.parseInt(args[0]);
    long begin = 0;
    try (EagerSession eager = EagerSession.create();
        Graph g = new Graph();
        Session session = new Session(g);
        TFloat32 fed = TFloat32.tensorOf(Shape.of(1, 1, 1, 1))) {
      Ops tf = Ops.create(eager);
      Constant<TFloat32> x = tf.constant(new float[][][][] {{{{1f, 2f}, {3f, 4f}}}});
      Constant<TFloat32> f = tf.constant(new float[][][][] {{{{1f}, {1f}}}});
      Ops in = Ops.create(g);
      Placeholder<TFloat32> p = in.placeholder(TFloat32.class);
      Conv2d<TFloat32> y = in.nn.conv2d(p, in.constant(new float[][][][] {{{{2f}}}}), ONE, "SAME");
      for (int i = 0; i < count; i++) {
        if (i == count / 10) {
          begin = Check.kilobytes();
        }
        Conv2d<TFloat32> made = tf.nn.conv2d(x, f, ONE, "VALID"); // nobody closes most of these
        if (i % 3 == 0) {
          made.asTensor().close();
        } else if (i % 10 == 1) {
          session.runner().feed(p, fed).fetch(y).run(); // nor this
        } else if (i % 100 == 2) {
          TFloat32.tensorOf(Shape.of(1 << 18)); // a megabyte that only the collector finds
        } else if (i % 10 == 5) {
          Check.that(Check.thrown(() -> tf.nn.conv2d(x, x, ONE, "none")).contains("padding"), "refused");
        }
        try (Result r = i % 10 == 3 ? session.runner().feed(p, fed).fetch(y).run() : null) {
          Check.that(r == null || r.size() == 1, "one result");
        }
      }
    }
    System.out.println(Check.kilobytes() - begin);
  }
}
