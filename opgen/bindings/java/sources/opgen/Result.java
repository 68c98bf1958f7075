package opgen;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** What a run has given: a tensor for each fetch, by position and by the name of the result.  Closing it closes all. */
public final class Result implements AutoCloseable, Iterable<Map.Entry<String, Tensor>> {
  private final Map<String, Tensor> byName = new LinkedHashMap<>();
  private final List<Tensor> tensors;
  private boolean closed;

  Result(List<String> names, List<Tensor> tensors) {
    this.tensors = new ArrayList<>(tensors);
    for (int i = 0; i < names.size(); i++) {
      byName.putIfAbsent(names.get(i), tensors.get(i));
    }
  }

  @Override
  public void close() {
    closed = true;
    for (Tensor tensor : tensors) {
      tensor.close();
    }
  }

  @Override
  public Iterator<Map.Entry<String, Tensor>> iterator() {
    checkOpen();
    return Collections.unmodifiableMap(byName).entrySet().iterator();
  }

  /** The number of tensors. */
  public int size() {
    return tensors.size();
  }

  /** The names of the results. */
  public Set<String> keySet() {
    return Collections.unmodifiableSet(byName.keySet());
  }

  /** Whether there is a result of a name. */
  public boolean containsKey(String key) {
    return byName.containsKey(key);
  }

  /** The tensor of a fetch, by its position. */
  public Tensor get(int index) {
    checkOpen();
    return tensors.get(index);
  }

  /** The tensor of a result, by its name. */
  public Optional<Tensor> get(String key) {
    checkOpen();
    return Optional.ofNullable(byName.get(key));
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the result is closed");
    }
  }
}
