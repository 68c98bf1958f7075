import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;
import org.tensorflow.DataType;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Output;
import org.tensorflow.Session;
import org.tensorflow.Shape;
import org.tensorflow.Tensor;
import org.tensorflow.Tensors;
import org.tensorflow.op.Scope;
import org.tensorflow.op.core.Constant;
import org.tensorflow.op.core.Conv2D;
import org.tensorflow.op.core.Conv2DBackpropFilterV2;
import org.tensorflow.op.core.Conv2DBackpropInputV2;
import org.tensorflow.op.core.Placeholder;

/** A convolution and its gradients as they were written for TensorFlow 1: the calls of the page that the names are of. */
public final class LegacyNetwork {
  private static <T extends Number> Conv2DBackpropFilterV2<T> byFilter(
      Scope scope, Operand<T> input, Operand<T> filter, Operand<T> outBackprop, List<Long> strides) {
    return Conv2DBackpropFilterV2.create(
        scope, input, filter, outBackprop, strides, "SAME",
        Conv2DBackpropFilterV2.dataFormat("NHWC"),
        Conv2DBackpropFilterV2.dilations(Arrays.asList(1L, 1L, 1L, 1L)).useCudnnOnGpu(false),
        Conv2DBackpropFilterV2.explicitPaddings(Arrays.asList()),
        Conv2DBackpropFilterV2.useCudnnOnGpu(true));
  }

  public static void main(String[] args) {
    List<Long> strides = Arrays.asList(1L, 2L, 2L, 1L);
    try (Graph g = new Graph()) {
      Scope scope = new Scope(g);
      Placeholder<Float> image =
          Placeholder.create(scope.withName("image"), Float.class, Placeholder.shape(Shape.make(1, -1, 4, 1)));
      Constant<Float> filter =
          Constant.create(scope.withName("filter"), new long[] {3, 3, 1, 2}, FloatBuffer.wrap(new float[] {
              1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
      Conv2D<Float> y = Conv2D.create(scope.withSubScope("layer"), image, filter, strides, "SAME");
      Conv2DBackpropInputV2<Float> dx = Conv2DBackpropInputV2.create(scope, image, filter, y, strides, "SAME");
      Conv2DBackpropFilterV2<Float> df = byFilter(scope, image, filter, y, strides);
      Output<Float> output = df.output();
      // The same by an op's name, as programs did it that had no class for it.
      Output<Float> again =
          g.opBuilder("Conv2D", "again")
              .addInput(image.asOutput())
              .addInput(filter.asOutput())
              .setAttr("strides", new long[] {1, 2, 2, 1})
              .setAttr("padding", "SAME")
              .build()
              .output(0);
      System.out.println(y.asOutput().op().name() + " " + output.shape() + " " + output.dataType() + " " + y.asOutput().shape());

      float[][][][] pixels = new float[1][4][4][1];
      for (int i = 0; i < 16; i++) {
        pixels[0][i / 4][i % 4][0] = i;
      }
      try (Session s = new Session(g);
          Tensor<Float> x = Tensors.create(pixels)) {
        List<Tensor<?>> all =
            s.runner().feed("image", x).fetch(y).fetch("again", 0).fetch(dx.output()).fetch(output).addTarget("filter").run();
        try (Tensor<Float> t = all.get(0).expect(Float.class);
            Tensor<Float> same = all.get(1).expect(Float.class);
            Tensor<?> byImage = all.get(2);
            Tensor<?> byFilter = all.get(3)) {
          float[][][][] copy = t.copyTo(new float[1][2][2][2]);
          System.out.println(Arrays.deepToString(copy) + " " + Arrays.deepEquals(copy, same.copyTo(new float[1][2][2][2])));
          FloatBuffer elements = FloatBuffer.allocate(byImage.numElements());
          byImage.writeTo(elements);
          System.out.println(Arrays.toString(elements.array()));
          System.out.println(byFilter + " " + byFilter.numBytes());
          System.out.println(Arrays.deepToString(byFilter.copyTo(new float[3][3][1][2])));
        }
      }
    }
    try (Tensor<Integer> scalar = Tensor.create(42, Integer.class);
        Tensor<?> any = Tensor.create(new double[][] {{1, 2}, {3, 4}})) {
      System.out.println(scalar.intValue() + " " + any.dataType() + " " + (any.dataType() == DataType.DOUBLE));
    }
  }
}
