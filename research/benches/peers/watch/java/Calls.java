import java.util.Arrays;

/**
 * `java Calls CALLS WARM METHOD_NS DEPTH`: times of calls, of which the second half counts, after some that take no
 * time of their own. Prints a figure's name and its value in nanoseconds in each line. Nothing is woven in here.
 */
public final class Calls {
    private static volatile long seen;

    public static void main(final String[] words) {
        final int calls = Integer.parseInt(words[0]);
        final int warm = Integer.parseInt(words[1]);
        final long nanoseconds = Long.parseLong(words[2]);
        final int depth = Integer.parseInt(words[3]);
        final Monitored monitored = new Monitored();
        for (int call = 0; call < warm; call++) {
            seen = monitored.method(0, depth);
        }
        final long[] times = new long[calls];
        for (int call = 0; call < calls; call++) {
            final long begin = System.nanoTime();
            seen = monitored.method(nanoseconds, depth);
            times[call] = System.nanoTime() - begin;
        }
        final long[] counted = Arrays.copyOfRange(times, calls / 2, calls);
        Arrays.sort(counted);
        double sum = 0;
        for (final long time : counted) {
            sum += time;
        }
        System.out.println("mean_ns " + sum / counted.length);
        System.out.println("median_ns " + counted[counted.length / 2]);
        System.out.println("p99_ns " + counted[counted.length * 99 / 100]);
        System.out.println("longest_ns " + counted[counted.length - 1]);
        System.exit(0);
    }
}
