/* Loaded before the C library: the time of day is moved by as many seconds as the file says that MOVED_CLOCK names. The other
 * clocks go on as they are, which is what Linux promises of them when somebody sets the time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *moved_s;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("MOVED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *moved_s, PROT_READ, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        abort();
    }
    moved_s = memory;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int answer = syscall(SYS_clock_gettime, clock, time);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += *moved_s;
    }
    return answer;
}
