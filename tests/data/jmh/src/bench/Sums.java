package bench;

import java.util.HashMap;
import java.util.Map;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

@State(Scope.Thread)
public class Sums {
    @State(Scope.Thread)
    public static class Sized {
        @Param({"100", "1000"})
        int size;
    }

    int rounds = variable("WORK", 1000);
    final Map<Integer, Integer> seen = new HashMap<>();
    int prepared;

    static int variable(String name, int value) {
        String text = System.getenv(name);
        return text == null ? value : Integer.parseInt(text);
    }

    static int work(int rounds) {
        int total = 0;
        for (int round = 0; round < rounds; round++) {
            total = (total ^ round) + 1;
        }
        return total;
    }

    @Setup
    public void prepare() {
        prepared = work(variable("SETUP", 10));
    }

    /** Its first iteration prepares, and what it fills grows. */
    @Benchmark
    public int work() {
        if (seen.isEmpty()) prepare();
        seen.put(seen.size(), rounds);
        return work(rounds);
    }

    @Benchmark
    @BenchmarkMode({Mode.AverageTime, Mode.Throughput})
    public int twoModes() {
        return work(rounds);
    }

    @Benchmark
    public int sized(Sized sized) {
        return work(sized.size);
    }
}
