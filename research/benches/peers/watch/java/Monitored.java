/** A method that takes some time, below itself to a depth: what Kieker's probes are woven into. */
final class Monitored {
    long method(final long nanoseconds, final int depth) {
        if (depth > 1) {
            return method(nanoseconds, depth - 1);
        }
        final long begin = System.nanoTime();
        long gone;
        do {
            gone = System.nanoTime() - begin;
        } while (gone < nanoseconds);
        return gone;
    }
}
