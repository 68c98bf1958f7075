import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.stream.Collectors;
import nn_ops.Tensor;
import nn_ops.internal.Halves;
import nn_ops.ndarray.FloatNdArray;
import nn_ops.ndarray.NdArrays;
import nn_ops.ndarray.Shape;
import nn_ops.ndarray.StdArrays;
import nn_ops.ndarray.buffer.DataBuffers;
import nn_ops.ndarray.buffer.FloatDataBuffer;
import nn_ops.proto.DataType;
import nn_ops.types.TBfloat16;
import nn_ops.types.TBool;
import nn_ops.types.TFloat16;
import nn_ops.types.TFloat32;
import nn_ops.types.TFloat64;
import nn_ops.types.TInt16;
import nn_ops.types.TInt32;
import nn_ops.types.TInt64;
import nn_ops.types.TUint8;

/** Tensors and arrays of all types, in both faces. */
public final class Values {
  /** Every 16-bit pattern survives the way to float and back; halfway between neighbours the even one is taken. */
  private static void conversions() {
    for (int bits = 0; bits < 0x10000; bits++) {
      float half = Halves.fromHalf((short) bits);
      float bfloat = Halves.fromBfloat((short) bits);
      if (!Float.isNaN(half)) {
        Check.same(Halves.toHalf(half) & 0xffff, bits);
      }
      if (!Float.isNaN(bfloat)) {
        Check.same(Halves.toBfloat(bfloat) & 0xffff, bits);
      }
      Check.that(Float.isNaN(Halves.fromHalf(Halves.toHalf(half))) == Float.isNaN(half), "a NaN");
      Check.that(Float.isNaN(Halves.fromBfloat(Halves.toBfloat(bfloat))) == Float.isNaN(bfloat), "a NaN");
      float next = Halves.fromHalf((short) (bits + 1));
      if ((bits & 0x7fff) < 0x7bff) {
        float middle = (float) (((double) half + next) / 2);
        Check.same(Halves.toHalf(middle) & 1, 0);
        Check.same(Halves.toHalf(Math.nextAfter(middle, half)) & 0xffff, bits);
        Check.same(Halves.toHalf(Math.nextAfter(middle, next)) & 0xffff, bits + 1);
      }
    }
    Check.same(Halves.fromHalf(Halves.toHalf(65520f)), Float.POSITIVE_INFINITY);
    Check.same(Halves.fromHalf(Halves.toHalf(-65519f)), -65504f);
  }

  private static void types() {
    try (TFloat16 h = TFloat16.vectorOf(1.5f, -2f, 65504f, 0.1f);
        TBfloat16 b = TBfloat16.vectorOf(1.5f, 3.14159f);
        TFloat64 d = TFloat64.tensorOf(StdArrays.ndCopyOf(new double[][] {{1, 2}, {3, 4}}));
        TInt64 l = TInt64.scalarOf(1L << 40);
        TInt16 s = TInt16.vectorOf((short) -7);
        TUint8 u = TUint8.vectorOf((byte) 200, (byte) 1);
        TBool t = TBool.vectorOf(true, false, true)) {
      Check.same(h.getFloat(3), 0.099975586f);
      Check.same(h.numBytes() + " " + h.dataType() + " " + h.type().getSimpleName(), "8 DT_HALF TFloat16");
      Check.same(b.getFloat(1), 3.140625f);
      Check.same(d.getDouble(1, 0) + " " + d.rank() + " " + d.size(), "3.0 2 4");
      Check.same(l.getLong(), 1L << 40);
      Check.same(s.getShort(0), (short) -7);
      Check.same(u.getByte(0) & 0xff, 200);
      Check.same(t.getBoolean(0) + " " + t.getBoolean(1) + " " + t.getObject(2), "true false true");
      float[] all = new float[4];
      h.copyTo(DataBuffers.of(all, false, false));
      Check.same(all, new float[] {1.5f, -2f, 65504f, 0.099975586f});
      byte[] bytes = new byte[2];
      u.asRawTensor().data().read(bytes);
      Check.same(bytes, new byte[] {(byte) 200, 1});
      Check.same(d.toString(), "DT_DOUBLE tensor with shape [2, 2]");
      Check.same(DataType.forNumber(14), DataType.DT_BFLOAT16);
    }
    Check.thrown(() -> TFloat32.tensorOf(Shape.of(2, -1)), "IllegalArgumentException: no tensor has the shape [2, -1]");
    Check.thrown(() -> Tensor.of(TFloat32.class, Shape.unknown()), "IllegalArgumentException: no tensor has the shape null");
    Check.thrown(
        () -> TFloat32.tensorOf(Shape.of(1L << 40, 1L << 40)),
        "IllegalArgumentException: no tensor has the shape [1099511627776, 1099511627776]");
    Check.thrown(
        () -> TFloat32.tensorOf(Shape.of(1L << 50)),
        "TFResourceExhaustedException: no memory for a tensor of 4503599627370496 bytes");
    try (TFloat32 empty = TFloat32.tensorOf(Shape.of(3, 0, 2))) {
      Check.same(empty.size() + " " + empty.numBytes() + " " + empty.streamOfObjects().count(), "0 0 0");
    }
  }

  private static void arrays() {
    FloatNdArray a = StdArrays.ndCopyOf(new float[][] {{1, 2, 3}, {4, 5, 6}});
    try (TFloat32 t = TFloat32.tensorOf(a)) {
      Check.that(a.equals(t) && t.equals(a) && a.hashCode() == t.hashCode(), "the same elements");
      t.get(1).setFloat(9, 2).setFloat(8, 0);
      Check.same(StdArrays.array2dCopyOf(t), new float[][] {{1, 2, 3}, {8, 5, 9}});
      Check.that(!a.equals(t), "other elements");
      t.set(NdArrays.vectorOf(7f, 7f, 7f), 0);
      Check.same(t.streamOfObjects().map(String::valueOf).collect(Collectors.joining(" ")), "7.0 7.0 7.0 8.0 5.0 9.0");
      StringBuilder rows = new StringBuilder();
      t.elements(0).forEachIndexed((at, row) -> rows.append(Arrays.toString(at)).append(row.getFloat(2)).append(row.shape()));
      Check.same(rows.toString(), "[0]7.0[3][1]9.0[3]");
      Check.same(t.withShape(Shape.of(3, 2)).getFloat(2, 1), 9f);
      FloatDataBuffer buffer = DataBuffers.ofFloats(6);
      t.copyTo(buffer);
      Check.same(buffer.getFloat(5) + " " + buffer.slice(3, 2).getFloat(0) + " " + buffer.offset(4).size(), "9.0 8.0 2");
      t.copyFrom(DataBuffers.of(1f, 1f, 2f, 3f, 5f, 8f));
      Check.same(t.getFloat(1, 2), 8f);
      Check.thrown(
          () -> t.getFloat(1), "IllegalRankException: an array of shape [2, 3] has no element with 1 coordinates");
      Check.thrown(
          () -> t.getFloat(1, 3), "IndexOutOfBoundsException: coordinate 3 of dimension 1 of shape [2, 3]");
      Check.thrown(() -> t.getFloat(-1, 0), "IndexOutOfBoundsException: coordinate -1 of dimension 0 of shape [2, 3]");
      Check.thrown(
          () -> t.copyFrom(DataBuffers.of(1f)), "IndexOutOfBoundsException: elements 0 to 6 of 1");
      Check.thrown(
          () -> t.copyTo(NdArrays.ofFloats(Shape.of(3, 2))),
          "IllegalArgumentException: cannot copy an array of shape [2, 3] into one of shape [3, 2]");
      Check.thrown(() -> t.asRawTensor().data().getByte(24), "IndexOutOfBoundsException: elements 24 to 25 of 24");
    }
    Check.thrown(
        () -> StdArrays.ndCopyOf(new float[][] {{1}, {2, 3}}),
        "IllegalArgumentException: mismatched lengths (1 and 2) in dimension 0".replace("dimension 0", "dimension 1"));
    Check.same(Shape.of(1, 2, 3).append(4).prepend(0).takeLast(3) + " " + Shape.of(2, -1).size(), "[2, 3, 4] -1");
    Check.same(Shape.of(1, 2).tail() + " " + Shape.of(5).tail() + " " + Shape.of(4, 5).head(), "[2] [] [4]");
    Check.that(Shape.of(1, -1).isCompatibleWith(Shape.of(1, 7)) && !Shape.of(1).isCompatibleWith(Shape.of(2)), "");
  }

  private static void legacy() {
    ByteBuffer halves = ByteBuffer.allocate(4).order(ByteOrder.nativeOrder());
    halves.putShort(Halves.toHalf(2f)).putShort(Halves.toHalf(-3f)).flip();
    try (nn_ops.legacy.Tensor<nn_ops.legacy.types.Float16> h =
            nn_ops.legacy.Tensor.create(nn_ops.legacy.types.Float16.class, new long[] {2}, halves);
        nn_ops.legacy.Tensor<Long> l = nn_ops.legacy.Tensor.create(new long[] {2, 2}, LongBuffer.wrap(new long[] {1, 2, 3, 4}));
        nn_ops.legacy.Tensor<Boolean> b = nn_ops.legacy.Tensors.create(new boolean[] {true, false});
        nn_ops.legacy.Tensor<nn_ops.legacy.types.UInt8> u =
            nn_ops.legacy.Tensor.create(new byte[] {1, -1}, nn_ops.legacy.types.UInt8.class)) {
      Check.same(h.copyTo(new float[2]), new float[] {2f, -3f});
      Check.same(h + " " + h.numBytes(), "HALF tensor with shape [2] 4");
      Check.same(l.copyTo(new long[2][2]), new long[][] {{1, 2}, {3, 4}});
      Check.same(b.copyTo(new boolean[2]), new boolean[] {true, false});
      Check.same(u.dataType() + " " + Arrays.toString(u.copyTo(new byte[2])), "UINT8 [1, -1]");
      Check.thrown(() -> l.expect(Float.class), "IllegalArgumentException: the tensor is of type INT64, not FLOAT");
      Check.thrown(() -> l.copyTo(new long[4]), "IllegalArgumentException: a INT64 tensor with shape [2, 2] cannot be copied to long[]");
      Check.thrown(() -> l.copyTo(new long[2][3]), "IllegalArgumentException: cannot copy an array of shape [2, 2] into one of shape [2, 3]");
      Check.thrown(() -> l.copyTo(new double[2][2]), "IllegalArgumentException: a INT64 tensor with shape [2, 2] cannot be copied to double[][]");
      Check.thrown(() -> l.longValue(), "IllegalArgumentException: a INT64 tensor with shape [2, 2] was read as a scalar of type INT64");
      Check.thrown(() -> l.writeTo(LongBuffer.allocate(3)), "BufferOverflowException: null");
    }
    Check.thrown(
        () -> nn_ops.legacy.Tensor.create(new long[] {3}, LongBuffer.allocate(2)),
        "IllegalArgumentException: the buffer's elements are not those of a tensor of shape [3]");
    Check.thrown(
        () -> nn_ops.legacy.Tensor.create("text"),
        "IllegalArgumentException: no tensor has elements of java.lang.String");
    Check.thrown(
        () -> nn_ops.legacy.Tensor.create(1.0, Long.class),
        "IllegalArgumentException: a Double is no tensor of INT64");
    Check.same(nn_ops.legacy.Shape.make(1, -1) + " " + nn_ops.legacy.Shape.unknown(), "[1, ?] <unknown>");
  }

  public static void main(String[] args) {
    conversions();
    types();
    arrays();
    legacy();
  }
}
