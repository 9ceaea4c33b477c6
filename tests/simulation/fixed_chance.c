// No chance but that of the seed: what a program is told as random is always the same, and every clock stands still but
// the one that the program itself moves, and the time of day, which is later at each look. Hash maps are in the same order in each run, branches that are chosen at random are
// the same ones, and timers fire in the same order.

#define _GNU_SOURCE
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

ssize_t getrandom(void *into, size_t length, unsigned int flags) {
    (void)flags;
    memset(into, 0x5a, length);
    return (ssize_t)length;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    now->tv_sec = 1800000000;
    now->tv_nsec = 0;
    if (clock == CLOCK_REALTIME) {
        static atomic_long looks;
        long microseconds = atomic_fetch_add(&looks, 1);
        now->tv_sec += microseconds / 1000000;
        now->tv_nsec = microseconds % 1000000 * 1000;
    }
    return 0;
}
