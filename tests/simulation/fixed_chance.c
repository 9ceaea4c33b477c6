// No chance but that of the seed: what a program is told as random is always the same, and so is the time of day. Hash
// maps are in the same order in each run, and branches that are chosen at random are the same ones.

#define _GNU_SOURCE
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
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        now->tv_sec = 1800000000;
        now->tv_nsec = 0;
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}
