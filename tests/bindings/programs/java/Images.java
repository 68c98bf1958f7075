import images.Model;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Runs a model in every way, and writes its outputs: `Images FOLDER`, or `Images FOLDER WEIGHTS`. */
final class Images {
  private static void that(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  private static void refused(Runnable call, String expected) {
    try {
      call.run();
    } catch (RuntimeException e) {
      String said = e.getClass().getSimpleName() + ": " + e.getMessage();
      that(said.equals(expected), said);
      return;
    }
    throw new AssertionError("not refused: " + expected);
  }

  private static ByteBuffer buffer(int elements) {
    return ByteBuffer.allocateDirect(4 * elements).order(ByteOrder.nativeOrder());
  }

  private static void write(Path path, float[] values) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.nativeOrder());
    bytes.asFloatBuffer().put(values);
    Files.write(path, bytes.array());
  }

  public static void main(String[] args) throws Exception {
    Path folder = Paths.get(args[0]);
    float[] x = new float[Model.X_1_SIZE];
    ByteBuffer.wrap(Files.readAllBytes(folder.resolve("x_1.in"))).order(ByteOrder.nativeOrder()).asFloatBuffer().get(x);
    Model model;
    try {
      model = args.length > 1 ? new Model(Paths.get(args[1]), 2) : new Model();
    } catch (Model.Failure e) {
      System.out.println(e.status() + " " + e.getMessage());
      return;
    }
    Model.Outputs found = model.run(x);
    float[] out = found.out0();
    float[] e = found.e();
    write(folder.resolve("out_0.out"), out);
    write(folder.resolve("e.out"), e);

    float[] again = new float[Model.OUT_0_SIZE];
    float[] flat = new float[Model.E_SIZE];
    model.run(x, again, flat);
    that(Arrays.equals(out, again) && Arrays.equals(e, flat), "arrays of the caller's");
    ByteBuffer in = buffer(x.length + 1).position(4);
    in.slice().order(ByteOrder.nativeOrder()).asFloatBuffer().put(x);
    ByteBuffer direct = buffer(out.length);
    ByteBuffer second = buffer(e.length);
    model.run(in, direct, second);
    direct.asFloatBuffer().get(again);
    that(Arrays.equals(out, again), "direct buffers");

    refused(() -> model.run(new float[3]), "IllegalArgumentException: 'x.1': expected 972 elements, given 3");
    refused(
        () -> model.run(ByteBuffer.allocate(4 * 972), direct, second),
        "IllegalArgumentException: 'x.1': expected a direct buffer with 3888 bytes");
    refused(
        () -> model.run(in, direct.asReadOnlyBuffer(), second),
        "IllegalArgumentException: '/out/0': expected a direct buffer with 40 bytes that can be written");
    refused(
        () -> model.run(buffer(973).position(1), direct, second),
        "IllegalArgumentException: 'x.1': expected elements at multiples of 4 bytes");

    ConcurrentLinkedQueue<Throwable> wrong = new ConcurrentLinkedQueue<>();
    Thread[] threads = new Thread[8];
    for (int t = 0; t < threads.length; t++) {
      threads[t] = new Thread(() -> {
        try {
          for (int i = 0; i < 50; i++) {
            that(Arrays.equals(out, model.run(x).out0()), "many threads");
          }
        } catch (Throwable problem) {
          wrong.add(problem);
        }
      });
      threads[t].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    that(wrong.isEmpty(), String.valueOf(wrong.peek()));
    model.close();
    model.close();
    refused(() -> model.run(x), "IllegalStateException: the model is closed");
    for (int i = 0; i < 200; i++) {
      new Model(Paths.get(args.length > 1 ? args[1] : folder + "/share/images.weights")).run(x); // nobody closes it
    }
  }
}
