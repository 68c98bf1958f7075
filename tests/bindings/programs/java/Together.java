import generic.op.Ops;
import generic.types.TFloat32;
import java.util.Arrays;
import org.acme.words.Model;

/** Two forms of one op, in both faces, and a model, from two jars in one folder. */
final class Together {
  private static String show(TFloat32 t) {
    return t.getFloat(0, 0) + " " + t.getFloat(0, 1);
  }

  public static void main(String[] args) {
    Ops tf = Ops.create();
    float[][] x = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    System.out.println(show(tf.generic.softmax(tf.constant(x)).asTensor()));
    System.out.println(show(tf.generic.columns(tf.constant(x)).asTensor()));
    generic.legacy.op.Scope scope = new generic.legacy.op.Scope(generic.legacy.EagerSession.getDefault());
    float[][] old = new float[4][2];
    generic.legacy.op.core.Columns.create(scope, generic.legacy.op.core.Constant.create(scope, x)).output().tensor().copyTo(old);
    System.out.println(Arrays.deepToString(old));
    try {
      tf.generic.columns(tf.constant(1f));
    } catch (IllegalArgumentException e) {
      System.out.println(e.getMessage());
    }
    try (Model model = new Model()) {
      System.out.println(Arrays.toString(model.run(new double[Model.X_SIZE], new long[4], new byte[3]).more()));
    }
  }
}
