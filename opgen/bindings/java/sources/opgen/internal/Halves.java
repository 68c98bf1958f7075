package opgen.internal;

/** The two floating types of 16 bits, to and from {@code float}: to the nearest, ties to even. */
public final class Halves {
  private Halves() {}

  /** The bits of the nearest half. */
  public static short toHalf(float value) {
    int bits = Float.floatToRawIntBits(value);
    int sign = bits >>> 16 & 0x8000;
    int magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
      return (short) (sign | 0x7e00 | magnitude >>> 13 & 0x3ff); // a NaN stays one
    }
    if (magnitude >= 0x477ff000) {
      return (short) (sign | 0x7c00);
    }
    if (magnitude < 0x38800000) { // a denormal half: adding 0.5 leaves its bits, rounded, at the end
      return (short) (sign | Float.floatToRawIntBits(Float.intBitsToFloat(magnitude) + 0.5f) - 0x3f000000);
    }
    int odd = magnitude >>> 13 & 1;
    return (short) (sign | magnitude - 0x38000000 + 0xfff + odd >>> 13);
  }

  /** The value of a half. */
  public static float fromHalf(short half) {
    int sign = (half & 0x8000) << 16;
    int magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) {
      return Float.intBitsToFloat(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    }
    if (magnitude < 0x400) {
      float value = magnitude * 0x1p-24f;
      return sign == 0 ? value : -value;
    }
    return Float.intBitsToFloat(sign | (magnitude << 13) + 0x38000000);
  }

  /** The bits of the nearest bfloat16. */
  public static short toBfloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
      return (short) (bits >>> 16 | 0x40); // a NaN stays one
    }
    return (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
  }

  /** The value of a bfloat16. */
  public static float fromBfloat(short bfloat) {
    return Float.intBitsToFloat(bfloat << 16);
  }
}
