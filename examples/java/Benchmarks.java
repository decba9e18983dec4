// Benchmarks in the manner of JMH: a state that is set up, warm-up and measured iterations of a fixed number, and a black hole.
// Without JMH's clock, which decides how many iterations fit into a second: a fixed number makes runs comparable.
//
//     javac -d build Benchmarks.java
//     java -cp build Benchmarks NAME WARM-UPS ITERATIONS
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

public class Benchmarks {
  static final int SIZE = 2000;
  static volatile Object blackhole;

  final int[] numbers = new int[SIZE];
  final String[] words = new String[SIZE];

  Benchmarks() {
    int seed = 12345;
    for (int i = 0; i < SIZE; i++) {
      seed = seed * 1664525 + 1013904223;
      numbers[i] = seed >>> 8;
      words[i] = "word" + numbers[i] % 300;
    }
  }

  Object sort() {
    int[] copy = numbers.clone();
    Arrays.sort(copy);
    return copy;
  }

  Object count() {
    HashMap<String, Integer> counts = new HashMap<>();
    for (String word : words) counts.merge(word, 1, Integer::sum);
    return counts;
  }

  Object join() {
    StringBuilder all = new StringBuilder();
    for (String word : words) all.append(word).append(',');
    return all.toString();
  }

  public static void main(String[] args) {
    Benchmarks state = new Benchmarks();
    Map<String, Supplier<Object>> all = Map.of("sort", state::sort, "count", state::count, "join", state::join);
    Supplier<Object> chosen = all.get(args[0]);
    int iterations = Integer.parseInt(args[1]) + Integer.parseInt(args[2]);
    for (int i = 0; i < iterations; i++) blackhole = chosen.get();
    System.out.println(args[0] + ": " + iterations + " iterations");
  }
}
