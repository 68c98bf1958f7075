import java.util.Arrays;
import table.Model;

/** A step that fails: a place outside of a table. */
final class Table {
  public static void main(String[] args) {
    try (Model model = new Model()) {
      System.out.println(Arrays.toString(model.run(new float[15], new long[] {0, 4}).rows()));
      try {
        model.run(new float[15], new long[] {0, 5});
      } catch (Model.Failure | IllegalArgumentException e) {
        System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage());
      }
    }
  }
}
