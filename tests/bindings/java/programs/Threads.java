import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import nn_ops.EagerSession;
import nn_ops.Graph;
import nn_ops.Result;
import nn_ops.Session;
import nn_ops.ndarray.Shape;
import nn_ops.op.Ops;
import nn_ops.op.core.Placeholder;
import nn_ops.op.nn.Conv2d;
import nn_ops.types.TFloat32;

/** Many threads at once, virtual ones where there are such: each gets its own results and its own messages. */
public final class Threads {
  private static final List<Long> ONE = Arrays.asList(1L, 1L, 1L, 1L);

  /** Runs something in threads, numbered. */
  private static void together(int count, boolean virtual, java.util.function.IntConsumer task) throws Exception {
    ConcurrentLinkedQueue<Throwable> wrong = new ConcurrentLinkedQueue<>();
    CountDownLatch done = new CountDownLatch(count);
    for (int n = 0; n < count; n++) {
      int number = n;
      Runnable run = () -> {
        try {
          task.accept(number);
        } catch (Throwable e) {
          wrong.add(e);
        } finally {
          done.countDown();
        }
      };
      if (virtual) {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, run);
      } else {
        new Thread(run).start();
      }
    }
    done.await();
    if (!wrong.isEmpty()) {
      throw new AssertionError(wrong.size() + " threads failed", wrong.peek());
    }
  }

  private static TFloat32 filled(float value, long... sizes) {
    return TFloat32.tensorOf(Shape.of(sizes), data -> data.scalars().forEach(each -> each.setFloat(value)));
  }

  public static void main(String[] args) throws Exception {
    boolean virtual = Arrays.stream(Thread.class.getMethods()).anyMatch(m -> m.getName().equals("startVirtualThread"));
    try (Graph g = new Graph();
        Session session = new Session(g);
        EagerSession eager = EagerSession.create()) {
      Ops tf = Ops.create(g);
      Placeholder<TFloat32> x = tf.placeholder(TFloat32.class);
      Conv2d<TFloat32> y = tf.nn.conv2d(x, tf.constant(new float[][][][] {{{{2f}}}}), ONE, "SAME");
      Ops now = Ops.create(eager);
      together(32, false, t -> {
        for (int i = 1; i < 30; i++) {
          float value = t * 100 + i;
          try (TFloat32 fed = filled(value, 1, i, 3, 1);
              Result r = session.runner().feed(x, fed).fetch(y).run()) {
            Check.same(r.get(0).shape(), Shape.of(1, i, 3, 1));
            ((TFloat32) r.get(0)).scalars().forEach(each -> Check.same(each.getFloat(), 2 * value));
          }
          TFloat32 at = now.nn.conv2d(now.constantOf(filled(value, 1, 1, 1, 1)), now.constantOf(filled(3, 1, 1, 1, 1)), ONE, "SAME")
              .asTensor();
          Check.same(at.getFloat(0, 0, 0, 0), 3 * value);
        }
      });
      // Recording in one graph at once, too.
      together(32, false, t -> Ops.create(g).withSubScope("s").constant(t));
      int bad = virtual ? 2000 : 200;
      TFloat32 one = filled(1, 1, 1, 1, 1);
      together(bad, virtual, t -> {
        for (int i = 0; i < 5; i++) {
          long stride = -1 - 10L * t - i;
          String said = Check.thrown(() ->
              now.nn.conv2d(now.constantOf(one), now.constantOf(one), Arrays.asList(1L, stride, 1L, 1L), "SAME"));
          Check.that(said.contains("[1, " + stride + ", 1, 1]"), said);
          Thread.yield();
        }
      });
      // Closing a tensor under calls that use it: right, or refused, never a crash.
      for (int round = 0; round < 50; round++) {
        TFloat32 shared = filled(4, 1, 16, 16, 1);
        together(4, false, t -> {
          if (t == 0) {
            shared.close();
            return;
          }
          try (Result r = session.runner().feed(x, shared).fetch(y).run()) {
            Check.same(((TFloat32) r.get(0)).getFloat(0, 15, 15, 0), 8f);
          } catch (IllegalStateException e) {
            Check.same(e.getMessage(), "the tensor is closed");
          }
        });
      }
      System.out.println(virtual ? "virtual" : "plain");
    }
  }
}
