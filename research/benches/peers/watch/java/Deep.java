/** `java Deep CALLS`: nanoseconds a call ten deep; Kieker's probes are woven in, or not. */
public final class Deep {
    private static final int DEPTH = 9;
    private static final int BATCHES = 21;
    /** Batches before the compiler has settled. */
    private static final int WARM = 40;
    private static volatile int seen;

    int monitored(final int depth) {
        return depth == 0 ? 1 : monitored(depth - 1) + 1;
    }

    public static void main(final String[] words) {
        final int calls = Integer.parseInt(words[0]);
        final Deep deep = new Deep();
        final double[] times = new double[BATCHES];
        for (int batch = -WARM; batch < BATCHES; batch++) {
            final long begin = System.nanoTime();
            for (int call = 0; call < calls; call++) {
                seen = deep.monitored(DEPTH);
            }
            if (batch >= 0) {
                times[batch] = (System.nanoTime() - begin) / (double) calls;
            }
        }
        java.util.Arrays.sort(times);
        System.out.println(times[BATCHES / 2]);
        System.exit(0);
    }
}
