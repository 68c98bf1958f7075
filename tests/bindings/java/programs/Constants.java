import java.util.Arrays;
import org.tensorflow.EagerSession;
import org.tensorflow.Graph;
import org.tensorflow.Operand;
import org.tensorflow.Result;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.ndarray.IntNdArray;
import org.tensorflow.ndarray.NdArrays;
import org.tensorflow.ndarray.Shape;
import org.tensorflow.ndarray.StdArrays;
import org.tensorflow.ndarray.buffer.ByteDataBuffer;
import org.tensorflow.ndarray.buffer.DataBuffers;
import org.tensorflow.op.OpScope;
import org.tensorflow.op.Ops;
import org.tensorflow.op.Scope;
import org.tensorflow.op.core.Constant;
import org.tensorflow.types.TBfloat16;
import org.tensorflow.types.TBool;
import org.tensorflow.types.TFloat16;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TFloat64;
import org.tensorflow.types.TInt32;
import org.tensorflow.types.TInt64;
import org.tensorflow.types.TUint8;
import org.tensorflow.types.family.TNumber;

/** Tensors and constants in all the ways in which programs for TensorFlow make them. */
public final class Constants {
  private static <T extends TNumber> String half(Ops tf, Class<T> type) {
    T made = tf.constant(type, 2.5).asTensor();
    return made.dataType() + " " + made.shape();
  }

  private static void tensors() {
    TInt32 scalar = TInt32.scalarOf(42);
    System.out.println(scalar.dataType().name() + " " + scalar.rank() + " " + scalar.size() + " " + scalar.getInt());
    scalar.scalars().forEach(value -> System.out.println(value.getObject()));
    IntNdArray matrix = NdArrays.ofInts(Shape.of(3, 2));
    matrix.set(NdArrays.vectorOf(1, 2), 0).set(NdArrays.vectorOf(3, 4), 1).set(NdArrays.vectorOf(5, 6), 2);
    TInt32 copy = TInt32.tensorOf(matrix);
    System.out.println(copy.getInt(2, 1) + " " + copy.equals(matrix) + " " + matrix.equals(copy));
    IntNdArray cube = NdArrays.ofInts(Shape.of(3, 2, 4));
    cube.elements(0).forEach(each -> each.set(NdArrays.vectorOf(1, 2, 3, 4), 0).set(NdArrays.vectorOf(5, 6, 7, 8), 1));
    System.out.println(TInt32.tensorOf(cube).getInt(2, 1, 3));
    ByteDataBuffer bytes = DataBuffers.of(new byte[] {0, 0, (byte) 128, 63, 0, 0, 0, 64});
    try (TFloat32 raw = Tensor.of(TFloat32.class, Shape.of(2), bytes);
        TFloat64 room = Tensor.of(TFloat64.class, Shape.of(2), 16);
        TFloat64 set = Tensor.of(TFloat64.class, Shape.of(1), 8, data -> data.setDouble(7, 0))) {
      System.out.println(raw.getFloat(0) + " " + raw.getFloat(1) + " " + room.getDouble(1) + " " + set.getDouble(0));
    }
    for (Runnable wrong : new Runnable[] {
        () -> Tensor.of(TFloat32.class, Shape.of(3), bytes), () -> Tensor.of(TFloat32.class, Shape.of(3), 11)}) {
      try {
        wrong.run();
      } catch (IllegalArgumentException e) {
        System.out.println(e.getMessage());
      }
    }
  }

  private static void constants(Ops tf) {
    System.out.println(Arrays.toString(StdArrays.array1dCopyOf(tf.constant(Shape.of(2, 3)).asTensor())));
    Constant<TFloat32> x = tf.constant(1.5f);
    System.out.println(tf.constantOfSameType(x, 3).asTensor().getFloat() + " " + tf.constant(TInt32.class, 2.9).asTensor().getInt());
    System.out.println(half(tf, TFloat16.class) + " " + half(tf, TBfloat16.class) + " " + half(tf, TInt64.class));
    System.out.println(tf.constant(TBfloat16.class, 2.5).asTensor().getFloat() + " " + half(tf, TUint8.class));
    Operand<TUint8> raw = tf.constant(TUint8.class, Shape.of(2), DataBuffers.of(new byte[] {1, 2}));
    System.out.println(raw.asTensor().getByte(1) + " " + raw.type().getSimpleName());
    Constant<TBool> bools = tf.constant(new boolean[][] {{true, false}});
    Constant<TInt64> longs = tf.constant(new long[] {1, 2, 3});
    System.out.println(bools.shape() + " " + longs.shape() + " " + tf.constant(new double[2][1][1][1][1][3]).shape());
    System.out.println(tf.constant(Shape.of(2), DataBuffers.of(1f, 2f)).asTensor().getFloat(1));
  }

  public static void main(String[] args) {
    tensors();
    EagerSession.Options options = EagerSession.options();
    options.devicePlacementPolicy(EagerSession.DevicePlacementPolicy.SILENT);
    try (EagerSession session = options.async(false).build()) {
      constants(Ops.create(session));
    }
    IntNdArray array = NdArrays.wrap(Shape.of(4), DataBuffers.of(1, 2, 3, 4));
    try (Graph g = new Graph();
        Session session = new Session(g)) {
      Scope scope = new OpScope(g);
      Constant<TInt32> first = Constant.tensorOf(scope, Shape.of(4), DataBuffers.of(1, 2, 3, 4));
      Constant<TInt32> second = Constant.tensorOf(scope, array);
      try (Result result = session.runner().fetch(first).fetch(second).run()) {
        System.out.println(array.equals(result.get(0)) + " " + array.equals(result.get(1)));
      }
    }
  }
}
