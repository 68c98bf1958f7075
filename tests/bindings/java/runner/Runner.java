import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Makes calls from a table, for tests: `Runner FACE MODE CALLS INPUTS OUTPUTS`.
 *
 * <p>FACE is Current or Legacy. A line of CALLS is an id, an op, its inputs (type, rank, sizes, position in INPUTS) and
 * its attributes; a line of the answer is the id and "ok" with the results (their elements go to OUTPUTS) or "error"
 * with code and message. MODE: eager (at once), const (a graph of constants), feed (placeholders of known shape), late
 * (of unknown shape).
 */
public final class Runner {
  private Runner() {}

  static final class Data {
    final String type;
    final long[] shape;
    final byte[] bytes;

    Data(String type, long[] shape, byte[] bytes) {
      this.type = type;
      this.shape = shape;
      this.bytes = bytes;
    }
  }

  static final class Job {
    String id;
    String op;
    String mode;
    final List<Data> in = new ArrayList<>();
    final Map<String, String[]> given = new HashMap<>();

    boolean has(String name) {
      return given.containsKey(name);
    }

    List<Long> longs(String name) {
      List<Long> all = new ArrayList<>();
      for (String text : given.get(name)) {
        all.add(Long.valueOf(text));
      }
      return all;
    }

    List<Double> doubles(String name) {
      List<Double> all = new ArrayList<>();
      for (String text : given.get(name)) {
        all.add(number(text));
      }
      return all;
    }

    Double number(String name) {
      String text = has(name) ? given.get(name)[0] : name;
      return "inf".equals(text) ? Double.POSITIVE_INFINITY : "-inf".equals(text) ? Double.NEGATIVE_INFINITY
          : "nan".equals(text) ? Double.valueOf(Double.NaN) : Double.valueOf(text);
    }

    Long integer(String name) {
      return Long.valueOf(given.get(name)[0]);
    }

    Boolean bool(String name) {
      return Boolean.valueOf(given.get(name)[0]);
    }

    String word(String name) {
      String hex = given.get(name)[0];
      byte[] bytes = new byte[(hex.length() - 2) / 2];
      for (int i = 0; i < bytes.length; i++) {
        bytes[i] = (byte) Integer.parseInt(hex.substring(1 + 2 * i, 3 + 2 * i), 16);
      }
      return new String(bytes, StandardCharsets.UTF_8);
    }
  }

  private static Job read(String line, byte[] blob, String mode) {
    String[] words = line.split(" ");
    int at = 0;
    Job job = new Job();
    job.mode = mode;
    job.id = words[at++];
    job.op = words[at++];
    for (int left = Integer.parseInt(words[at++]); left > 0; left--) {
      String type = words[at++];
      long[] shape = new long[Integer.parseInt(words[at++])];
      long count = 1;
      for (int i = 0; i < shape.length; i++) {
        shape[i] = Long.parseLong(words[at++]);
        count *= shape[i];
      }
      int position = Integer.parseInt(words[at++]);
      int bytes = (int) count * bytes(type);
      job.in.add(new Data(type, shape, Arrays.copyOfRange(blob, position, position + bytes)));
    }
    for (int left = Integer.parseInt(words[at++]); left > 0; left--) {
      String name = words[at++];
      int count = Integer.parseInt(words[at++]);
      job.given.put(name, Arrays.copyOfRange(words, at, at + count));
      at += count;
    }
    return job;
  }

  private static int bytes(String type) {
    String digits = type.replaceAll("_.*|\\D", ""); // those of float8_e5m2 are 8
    return digits.isEmpty() ? 1 : Math.max(1, Integer.parseInt(digits) / 8);
  }

  private static int code(RuntimeException error) {
    if (error instanceof IllegalArgumentException) {
      return 3;
    }
    return error instanceof UnsupportedOperationException ? 12 : 8;
  }

  public static void main(String[] args) throws IOException {
    byte[] blob = Files.readAllBytes(Paths.get(args[3]));
    PrintStream answer = new PrintStream(System.out, false, "UTF-8");
    long position = 0;
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(Paths.get(args[4])))) {
      for (String line : Files.readAllLines(Paths.get(args[2]))) {
        Job job = read(line, blob, args[1]);
        List<Data> results;
        try {
          results = args[0].equals("Current") ? Current.call(job) : Legacy.call(job);
        } catch (IllegalArgumentException | UnsupportedOperationException e) {
          answer.println(job.id + " error " + code(e) + " " + e.getMessage());
          continue;
        }
        StringBuilder said = new StringBuilder(job.id + " ok");
        for (Data d : results) {
          said.append(' ').append(d.type).append(' ').append(d.shape.length);
          for (long size : d.shape) {
            said.append(' ').append(size);
          }
          said.append(' ').append(position);
          out.write(d.bytes);
          position += d.bytes.length;
        }
        answer.println(said);
      }
    }
    answer.flush();
  }
}
