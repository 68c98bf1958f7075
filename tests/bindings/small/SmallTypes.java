import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import small_types.EagerSession;
import small_types.Operand;
import small_types.Tensor;
import small_types.legacy.types.Float8E5M2;
import small_types.legacy.types.Int4;
import small_types.ndarray.ByteNdArray;
import small_types.ndarray.FloatNdArray;
import small_types.ndarray.Shape;
import small_types.ndarray.buffer.DataBuffers;
import small_types.op.Ops;
import small_types.op.core.Constant;
import small_types.types.TFloat32;
import small_types.types.TFloat4E2m1fn;
import small_types.types.TFloat8E4m3fn;
import small_types.types.TFloat8E4m3fnuz;
import small_types.types.TFloat8E5m2;
import small_types.types.TFloat8E5m2fnuz;
import small_types.types.TFloat8E8m0fnu;
import small_types.types.TInt2;
import small_types.types.TInt4;
import small_types.types.TUint2;
import small_types.types.TUint4;
import small_types.types.family.TNumber;

/**
 * Types of at most 8 bits: `SmallTypes FLOATS ANSWERS` writes, for each type, what small_types.cpp writes; integers are
 * written as bytes, the floats held between -100 and 100.
 */
public final class SmallTypes {
  private static final List<Class<? extends TNumber>> TYPES =
      List.of(
          TInt4.class, TUint4.class, TInt2.class, TUint2.class, TFloat8E4m3fn.class, TFloat8E4m3fnuz.class,
          TFloat8E5m2.class, TFloat8E5m2fnuz.class, TFloat8E8m0fnu.class, TFloat4E2m1fn.class);

  private static <T extends TNumber> void type(Class<T> type, float[] given, DataOutputStream answers)
      throws IOException {
    byte[] bytes = new byte[256];
    for (int i = 0; i < 256; i++) {
      bytes[i] = (byte) i;
    }
    float[] values = new float[256];
    try (T all = Tensor.of(type, Shape.of(256));
        T written = Tensor.of(type, Shape.of(given.length));
        TFloat32 ones = TFloat32.tensorOf(Shape.of(256), data -> data.scalars().forEach(e -> e.setFloat(1f)));
        EagerSession session = EagerSession.create()) {
      all.asRawTensor().data().write(bytes);
      byte[] given8 = new byte[given.length];
      for (int i = 0; i < given.length; i++) {
        given8[i] = (byte) Math.max(-100, Math.min(100, given[i]));
      }
      if (all instanceof FloatNdArray) {
        ((FloatNdArray) all).copyTo(DataBuffers.of(values, false, false));
        ((FloatNdArray) written).copyFrom(DataBuffers.of(given, true, false));
        ((FloatNdArray) written).setFloat(given[1], 1);
        same(((FloatNdArray) all).getFloat(5), values[5]);
      } else {
        byte[] read = new byte[256];
        ((ByteNdArray) all).copyTo(DataBuffers.of(read, false, false));
        for (int i = 0; i < 256; i++) {
          values[i] = read[i];
        }
        ((ByteNdArray) written).copyFrom(DataBuffers.of(given8, true, false));
        ((ByteNdArray) written).setByte(given8[1], 1);
        same(((ByteNdArray) all).getByte(15), read[15]);
      }
      for (float value : values) {
        answers.writeInt(Integer.reverseBytes(Float.floatToRawIntBits(value)));
      }
      answers.write(read(written));
      Ops ops = Ops.create(session);
      Operand<T> made = ops.small_types.scaled(Constant.create(ops.scope(), all), ops.constantOf(ones)).y();
      answers.write(read(made.asTensor()));
      same(made.asTensor().dataType() + " " + all.numBytes(), all.dataType() + " 256");
    }
  }

  private static byte[] read(TNumber tensor) {
    byte[] found = new byte[(int) tensor.numBytes()];
    tensor.asRawTensor().data().read(found);
    return found;
  }

  private static void legacy() {
    try (small_types.legacy.Tensor<Int4> i = small_types.legacy.Tensor.create(new byte[] {-1, 7, 8}, Int4.class);
        small_types.legacy.Tensor<Float8E5M2> f =
            small_types.legacy.Tensor.create(new float[] {1.1f, 1e6f}, Float8E5M2.class)) {
      ByteBuffer bytes = ByteBuffer.allocate(3);
      i.writeTo(bytes);
      same(Arrays.toString(bytes.array()), "[15, 7, 8]");
      same(Arrays.toString(i.copyTo(new byte[3])), "[-1, 7, -8]");
      same(Arrays.toString(f.copyTo(new float[2])) + " " + f.dataType(), "[1.0, Infinity] FLOAT8_E5M2");
    }
  }

  private static void same(Object found, Object expected) {
    if (!found.equals(expected)) {
      throw new AssertionError("found " + found + ", expected " + expected);
    }
  }

  public static void main(String[] args) throws IOException {
    FloatBuffer file =
        ByteBuffer.wrap(Files.readAllBytes(Paths.get(args[0]))).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    float[] given = new float[file.remaining()];
    file.get(given);
    ByteArrayOutputStream answers = new ByteArrayOutputStream();
    for (Class<? extends TNumber> type : TYPES) {
      type(type, given, new DataOutputStream(answers));
    }
    legacy();
    Files.write(Paths.get(args[1]), answers.toByteArray());
  }
}
