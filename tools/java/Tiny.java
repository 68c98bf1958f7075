import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import nn_ops.EagerSession;
import nn_ops.Graph;
import nn_ops.Operand;
import nn_ops.Result;
import nn_ops.Session;
import nn_ops.internal.Native;
import nn_ops.legacy.op.Scope;
import nn_ops.legacy.op.core.Conv2D;
import nn_ops.op.Ops;
import nn_ops.op.core.Constant;
import nn_ops.op.nn.Conv2d;
import nn_ops.types.TFloat32;

/** Prints the processor's nanoseconds for each of several ways to make a tiny call, the best of some rounds. */
public final class Tiny {
  private static final List<Long> ONE = Arrays.asList(1L, 1L, 1L, 1L);
  private static final int CALLS = 50_000;
  private static final int ROUNDS = 12;

  private Tiny() {}

  private static void measure(String name, Runnable call) {
    long best = Long.MAX_VALUE;
    for (int round = 0; round < ROUNDS; round++) {
      long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      for (int i = 0; i < CALLS; i++) {
        call.run();
      }
      best = Math.min(best, ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begin);
    }
    System.out.println(name + "\t" + best / CALLS);
  }

  public static void main(String[] args) {
    Native.threads(Integer.parseInt(args[0]));
    float[][][][] pixels = {{{{1, 2}, {3, 4}}}};
    float[][][][] weights = {{{{1}, {1}}}};
    try (EagerSession eager = EagerSession.create();
        nn_ops.legacy.EagerSession older = nn_ops.legacy.EagerSession.create();
        Graph graph = new Graph();
        Session session = new Session(graph)) {
      Ops tf = Ops.create(eager);
      Constant<TFloat32> x = tf.constant(pixels);
      Constant<TFloat32> w = tf.constant(weights);
      measure("a call", () -> tf.nn.conv2d(x, w, ONE, "VALID"));
      measure("a call whose result is closed", () -> tf.nn.conv2d(x, w, ONE, "VALID").asTensor().close());
      Scope scope = new Scope(older);
      nn_ops.legacy.Operand<Float> x1 = nn_ops.legacy.op.core.Constant.create(scope, pixels);
      nn_ops.legacy.Operand<Float> w1 = nn_ops.legacy.op.core.Constant.create(scope, weights);
      measure("the same in the older face", () -> Conv2D.create(scope, x1, w1, ONE, "VALID").output().tensor().close());
      Ops in = Ops.create(graph);
      Operand<TFloat32> y = Conv2d.create(in.scope(), in.constant(pixels), in.constant(weights), ONE, "VALID");
      measure("a run of a graph of one call", () -> run(session, y));
    }
  }

  private static void run(Session session, Operand<TFloat32> wanted) {
    try (Result result = session.runner().fetch(wanted).run()) {
      if (result.size() != 1) {
        throw new AssertionError();
      }
    }
  }
}
