import java.util.Arrays;
import java.util.List;
import org.tensorflow.EagerSession;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Result;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.ndarray.FloatNdArray;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.ndarray.StdArrays;
import org.tensorflow.ndarray.buffer.DataBuffers;
import org.tensorflow.op.Ops;
import org.tensorflow.op.core.Constant;
import org.tensorflow.op.core.Placeholder;
import org.tensorflow.op.nn.Conv2d;
import org.tensorflow.op.nn.Conv2dBackpropFilter;
import org.tensorflow.op.nn.Conv2dBackpropInput;
import org.tensorflow.op.nn.DepthwiseConv2dNative;
import org.tensorflow.op.nn.DepthwiseConv2dNativeBackpropFilter;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TInt32;

/**
 * A small network as it is written for TensorFlow today: forward, gradients, three steps of descent, in a graph that a
 * session runs; then the forward pass at once.
 */
public final class Network {
  private static final List<Long> ONE = Arrays.asList(1L, 1L, 1L, 1L);
  private static final List<Long> TWO = List.of(1L, 2L, 2L, 1L);

  public static void main(String[] args) {
    FloatNdArray pixels = NdArrays.ofFloats(Shape.of(2, 6, 6, 3));
    pixels.scalars().forEachIndexed((at, each) -> each.setFloat((at[0] + 2 * at[1] + 3 * at[2] + 5 * at[3]) % 7 - 3));
    float[] first = values(3 * 3 * 3 * 4, 0.25f);
    float[] second = values(3 * 3 * 4, 0.5f);

    try (Graph graph = new Graph()) {
      Ops tf = Ops.create(graph);
      Placeholder<TFloat32> image =
          tf.withName("image").placeholder(TFloat32.class, Placeholder.shape(Shape.of(-1, 6, 6, 3)));
      Placeholder<TFloat32> w1 = tf.withName("w1").placeholder(TFloat32.class);
      Placeholder<TFloat32> w2 = tf.withName("w2").placeholder(TFloat32.class, Placeholder.shape(Shape.of(3, 3, 4, 1)));

      // Forward.
      Ops layer = tf.withSubScope("layer");
      Conv2d<TFloat32> hidden =
          layer.nn.conv2d(image, w1, TWO, "SAME", Conv2d.dataFormat("NHWC"), Conv2d.dilations(1L, 1L, 1L, 1L));
      DepthwiseConv2dNative<TFloat32> output =
          DepthwiseConv2dNative.create(layer.scope(), hidden, w2, ONE, "EXPLICIT",
              DepthwiseConv2dNative.explicitPaddings(Arrays.asList(0L, 0L, 1L, 1L, 1L, 1L, 0L, 0L)));

      // Gradients of half the sum of squares.
      Constant<TInt32> w1Shape = tf.constant(new int[] {3, 3, 3, 4});
      Constant<TInt32> w2Shape = tf.array(3, 3, 4, 1);
      DepthwiseConv2dNativeBackpropFilter<TFloat32> byW2 =
          tf.nn.depthwiseConv2dNativeBackpropFilter(hidden, w2Shape, output, ONE, "EXPLICIT",
              DepthwiseConv2dNativeBackpropFilter.explicitPaddings(0L, 0L, 1L, 1L, 1L, 1L, 0L, 0L));
      Operand<TFloat32> byHidden =
          tf.nn.depthwiseConv2dNativeBackpropInput(tf.constant(new int[] {2, 3, 3, 4}), w2, output, ONE, "SAME");
      Conv2dBackpropFilter<TFloat32> byW1 =
          tf.nn.conv2dBackpropFilter(image, w1Shape, byHidden, TWO, "SAME", Conv2dBackpropFilter.useCudnnOnGpu(true));
      Conv2dBackpropInput<TFloat32> byImage =
          tf.withName("by_image").nn.conv2dBackpropInput(tf.constant(new int[] {2, 6, 6, 3}), w1, byHidden, TWO, "SAME");
      System.out.println(hidden.op().name() + " " + output.op().name() + " " + byImage.op().name());
      System.out.println(byW2.shape() + " " + byImage.type().getSimpleName() + " " + image.shape());

      try (Session session = new Session(graph);
          TFloat32 x = TFloat32.tensorOf(pixels)) {
        for (int step = 0; step < 3; step++) {
          try (TFloat32 v1 = TFloat32.tensorOf(Shape.of(3, 3, 3, 4), DataBuffers.of(first));
              TFloat32 v2 = TFloat32.tensorOf(Shape.of(3, 3, 4, 1), data -> data.copyFrom(DataBuffers.of(second)));
              Result result =
                  session
                      .runner()
                      .feed(image, x)
                      .feed("w1", v1)
                      .feed("w2:0", v2)
                      .fetch(output)
                      .fetch(byW1)
                      .fetch(byW2.output())
                      .fetch("by_image")
                      .run()) {
            TFloat32 y = (TFloat32) result.get(0);
            System.out.println("loss " + loss(y));
            System.out.println("by image " + ((TFloat32) result.get(3)).getFloat(1, 2, 3, 1));
            descend(first, (TFloat32) result.get(1));
            descend(second, (TFloat32) result.get(byW2.output().name()).get());
          }
        }
      }
    }

    try (EagerSession session = EagerSession.create()) {
      Ops tf = Ops.create(session);
      Constant<TFloat32> image = tf.constant(pixels);
      Conv2d<TFloat32> hidden = tf.nn.conv2d(image, tf.constant(Shape.of(3, 3, 3, 4), DataBuffers.of(first)), TWO, "SAME");
      TFloat32 found = hidden.asTensor();
      float[][][][] nested = StdArrays.array4dCopyOf(found);
      System.out.println("hidden " + nested[1][2][0][3] + " " + found.shape() + " " + found.dataType());
    }
  }

  private static float[] values(int count, float scale) {
    float[] made = new float[count];
    for (int i = 0; i < count; i++) {
      made[i] = scale * ((i * 5) % 11 - 5);
    }
    return made;
  }

  private static double loss(TFloat32 y) {
    double sum = 0;
    for (FloatNdArray each : y.scalars()) {
      sum += each.getFloat() * each.getFloat() / 2;
    }
    return sum;
  }

  private static void descend(float[] weights, Tensor gradient) {
    float[] by = new float[weights.length];
    ((TFloat32) gradient).copyTo(DataBuffers.of(by, false, false));
    for (int i = 0; i < by.length; i++) {
      weights[i] -= 0x1p-16f * by[i];
    }
  }
}
