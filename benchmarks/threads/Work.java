// Counts words in a map, and hands work to four threads.
import java.util.HashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public class Work {
  public static void main(String[] args) throws InterruptedException {
    HashMap<String, Integer> counts = new HashMap<>();
    for (int i = 0; i < 20000; i++) counts.merge("w" + i * 7919 % 101, 1, Integer::sum);
    AtomicLong sum = new AtomicLong();
    ExecutorService pool = Executors.newFixedThreadPool(4);
    for (int i = 0; i < 200; i++) {
      final int number = i;
      pool.execute(() -> { for (int j = 0; j < 100; j++) sum.addAndGet(number ^ j); });
    }
    pool.shutdown();
    pool.awaitTermination(1, TimeUnit.MINUTES);
    System.out.println(counts.size() + " " + sum.get());
  }
}
