import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;
import nn_ops.EagerSession;
import nn_ops.Graph;
import nn_ops.Session;
import nn_ops.Tensor;
import nn_ops.ndarray.FloatNdArray;
import nn_ops.ndarray.Shape;
import nn_ops.ndarray.StdArrays;
import nn_ops.ndarray.buffer.ByteDataBuffer;
import nn_ops.ndarray.buffer.FloatDataBuffer;
import nn_ops.op.Ops;
import nn_ops.op.core.Constant;
import nn_ops.op.core.Placeholder;
import nn_ops.op.nn.Conv2d;
import nn_ops.types.TFloat32;
import nn_ops.types.TInt32;
import nn_ops.legacy.op.Scope;

/** Null in every place where a call takes something: the exception of every wrong call, which says what and where. */
public final class Nulls {
  private static final List<Long> ONE = Arrays.asList(1L, 1L, 1L, 1L);
  private static final float[][][][] IMAGE = {{{{1f}}}};

  private static void wrong(Check.Task call, String message) {
    Check.thrown(call, "TFInvalidArgumentException: " + message);
  }

  private static void calls(Ops tf, String node) {
    Constant<TFloat32> x = tf.constant(IMAGE);
    String lists = ": expected a list of 4, each a 32-bit integer >= 1, given ";
    Ops op = tf.withName("y");
    wrong(() -> op.nn.conv2d(x, x, Arrays.asList(1L, null, 1L, 1L), "SAME"),
        "Conv2D: argument 'strides'" + lists + "[1, null, 1, 1]" + node);
    wrong(() -> tf.withName("a").nn.conv2d(x, x, ONE, "SAME", Conv2d.dilations(1L, 1L, null, 1L)),
        "Conv2D: argument 'dilations'" + lists + "[1, 1, null, 1]" + node.replace("y", "a"));
    wrong(() -> tf.withName("b").nn.conv2d(x, x, ONE, "SAME", Conv2d.dilations(Arrays.asList(new Long[100]))),
        "Conv2D: argument 'dilations'" + lists + ("[" + "null, ".repeat(20)).substring(0, 77) + "..." + node.replace("y", "b"));
    wrong(() -> tf.withName("c").nn.conv2d(x, x, ONE, "SAME", Conv2d.dataFormat("NHWC"), null),
        "Conv2D: argument 'options': expected what the class's methods give, given null" + node.replace("y", "c"));
    wrong(() -> tf.withName("d").nn.conv2d(x, null, ONE, "SAME"),
        "Conv2D: argument 'filter': expected a tensor, given nothing" + node.replace("y", "d"));
    wrong(() -> tf.withName("e").constantOf((TFloat32) null),
        "Const: argument 'value': expected a tensor, given null" + node.replace("y", "e"));
    wrong(() -> tf.constant((float[]) null), "Const: argument 'data': expected an array of 1 dimension, given null");
    wrong(() -> tf.array((int[]) null), "Const: argument 'data': expected an array of 1 dimension, given null");
    wrong(() -> tf.constant(new float[][][] {{{1}, {2}}, {{3}, null}}),
        "Const: argument 'data': expected an array of 3 dimensions, given one that is null at [1][1]");
    wrong(() -> tf.constant((FloatNdArray) null), "TFloat32: argument 'src': expected an array, given null");
    wrong(() -> tf.constant((Shape) null), "Const: argument 'shape': expected a shape, given null");
    wrong(() -> tf.constant(Shape.of(1), (FloatDataBuffer) null), "TFloat32: argument 'data': expected a buffer, given null");
    wrong(() -> tf.constant(TInt32.class, (Number) null), "Const: argument 'number': expected a number, given null");
    wrong(() -> tf.constantOfSameType(null, 1), "Const: argument 'toMatch': expected an operand, given null");
    // Lists that are null themselves are as if they were not given, as TensorFlow has it.
    Check.same(tf.nn.conv2d(x, x, ONE, "SAME", Conv2d.dilations((Long[]) null), Conv2d.dataFormat(null)).rank(), 4);
    Check.same(tf.nn.conv2d(x, x, ONE, "SAME", (Conv2d.Options[]) null).rank(), 4);
  }

  private static void tensors() {
    wrong(() -> Tensor.of(null, Shape.of(1)), "Tensor: argument 'type': expected a class of tensors, given null");
    wrong(() -> TFloat32.tensorOf((Shape) null), "Tensor: argument 'shape': expected a shape, given null");
    wrong(() -> Tensor.of(TFloat32.class, Shape.of(1), (ByteDataBuffer) null),
        "Tensor: argument 'rawData': expected a buffer, given null");
    wrong(() -> TFloat32.vectorOf((float[]) null),
        "TFloat32: argument 'values': expected an array of 1 dimension, given null");
    wrong(() -> StdArrays.ndCopyOf(new float[][] {null}),
        "StdArrays: argument 'array': expected an array of 2 dimensions, given one that is null at [0]");
    Check.thrown(() -> TFloat32.tensorOf(Shape.of(2, -1)), "IllegalArgumentException: no tensor has the shape [2, -1]");
    Check.thrown(() -> TFloat32.tensorOf(Shape.of(2, -7)), "IllegalArgumentException: no tensor has the shape [2, -7]");
  }

  private static void runs() {
    try (Graph graph = new Graph();
        Session session = new Session(graph)) {
      Ops tf = Ops.create(graph);
      String operand = "Session.Runner: argument 'operand': expected a result of the graph, given null";
      wrong(() -> session.runner().feed((Placeholder<?>) null, TFloat32.scalarOf(1)), operand);
      wrong(() -> session.runner().fetch((Placeholder<?>) null), operand);
      wrong(() -> tf.placeholder(null), "Placeholder: argument 'dtype': expected a class of tensors, given null");
      wrong(() -> tf.placeholder(TFloat32.class, (Placeholder.Options) null),
          "Placeholder: argument 'options': expected what the class's methods give, given null (node 'Placeholder')");
    }
  }

  private static void legacy() {
    Scope scope = new Scope(nn_ops.legacy.EagerSession.getDefault());
    nn_ops.legacy.op.core.Constant<Float> x = nn_ops.legacy.op.core.Constant.create(scope, IMAGE);
    wrong(() -> nn_ops.legacy.op.core.Conv2D.create(scope, x, x, Arrays.asList(1L, null, 1L, 1L), "SAME"),
        "Conv2D: argument 'strides': expected a list of 4, each a 32-bit integer >= 1, given [1, null, 1, 1]");
    wrong(() -> nn_ops.legacy.op.core.Conv2D.create(scope, x, x, ONE, "SAME", (nn_ops.legacy.op.core.Conv2D.Options) null),
        "Conv2D: argument 'options': expected what the class's methods give, given null");
    wrong(() -> nn_ops.legacy.Tensor.create(null),
        "Tensor: argument 'obj': expected a number or an array of numbers, given null");
    wrong(() -> nn_ops.legacy.Tensor.create(null, Float.class),
        "Tensor: argument 'obj': expected a number or an array of numbers, given null");
    wrong(() -> nn_ops.legacy.Tensor.create(1f, null),
        "Tensor: argument 'type': expected a class of elements, given null");
    wrong(() -> nn_ops.legacy.Tensor.create(new long[] {1}, (FloatBuffer) null),
        "Tensor: argument 'data': expected a buffer, given null");
    wrong(() -> nn_ops.legacy.Tensor.create((long[]) null, FloatBuffer.allocate(1)),
        "Tensor: argument 'shape': expected a list of sizes, given null");
    wrong(() -> nn_ops.legacy.op.core.Constant.create(scope, new float[][] {{1}, null}),
        "Tensor: argument 'obj': expected an array of 2 dimensions, given one that is null at [1]");
    Check.thrown(() -> nn_ops.legacy.Tensor.create(new Float[] {1f}),
        "IllegalArgumentException: no tensor has elements of java.lang.Float");
    Check.thrown(() -> nn_ops.legacy.Tensor.create(new Float[] {1f}, Float.class),
        "IllegalArgumentException: a Float[] is no tensor of FLOAT");
    Check.thrown(() -> nn_ops.legacy.Tensor.create(new long[] {-1}, FloatBuffer.allocate(1)),
        "IllegalArgumentException: the buffer's elements are not those of a tensor of shape [-1]");
    wrong(() -> nn_ops.legacy.op.core.Placeholder.create(scope, null),
        "Placeholder: argument 'dtype': expected a class of elements, given null");
    try (nn_ops.legacy.Graph graph = new nn_ops.legacy.Graph();
        nn_ops.legacy.Session session = new nn_ops.legacy.Session(graph)) {
      nn_ops.legacy.op.core.Placeholder<Float> p =
          nn_ops.legacy.op.core.Placeholder.create(new Scope(graph), Float.class);
      wrong(() -> session.runner().feed(p, null),
          "Placeholder: expected float32[...] to be fed, given nothing (node 'Placeholder')");
      wrong(() -> nn_ops.legacy.op.core.Conv2D.create(scope, p, x, ONE, "SAME"),
          "Conv2D: argument 'input': expected a tensor that is there, given 'Placeholder:0' of a graph, which a session "
              + "runs");
    }
  }

  public static void main(String[] args) {
    try (Graph graph = new Graph()) {
      calls(Ops.create(graph), " (node 'y')");
    }
    try (EagerSession session = EagerSession.create()) {
      calls(Ops.create(session), "");
    }
    tensors();
    runs();
    legacy();
  }
}
