// Jumps out of calls, in a loop that never returns to the caller of `setjmp`, and blocks of the
// stack whose size varies.
#include <setjmp.h>
#include <string.h>

static jmp_buf place;

__attribute__((noinline)) static void leave(int number) { longjmp(place, number + 1); }

__attribute__((noinline)) static void between(int number) { leave(number); }

__attribute__((noinline)) static int varied(int bytes) {
    char block[bytes];
    memset(block, 1, bytes);
    return bytes > 1 ? varied(bytes / 2) + block[bytes - 1] : block[0];
}

__attribute__((noinline)) static int last(int number) { return number; }

int main(void) {
    volatile int rounds = 0;
    setjmp(place);
    if (rounds < 100) {
        rounds++;
        between(rounds);
    }
    return last(varied(1 << 10) - 11);
}
