import java.util.Arrays;
import org.acme.words.Model;

/** A model of doubles, longs and numbers of at most 8 bits (1, -4 and 6), one at a time. */
final class Words {
  public static void main(String[] args) {
    double[] x = new double[Model.X_SIZE];
    Arrays.setAll(x, i -> i);
    try (Model model = new Model()) {
      Model.Outputs found = model.run(x, new long[] {10, 20, 30, 1L << 40}, new byte[] {0x3c, (byte) 0xc4, 0x46});
      System.out.println(Arrays.toString(found.sums()) + Arrays.toString(found.more()) + Arrays.toString(found.small()));
    }
  }
}
