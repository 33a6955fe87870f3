/* Loaded before the C library: no file can be locked, as on a network file system that is mounted without locks. Shared memory is
 * never on such a one. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

int flock(int file, int operation) {
    static const char shared_memory[] = "/dev/shm/";
    char link[64], path[sizeof shared_memory] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) > 0 && strcmp(path, shared_memory) == 0) {
        return syscall(SYS_flock, file, operation);
    }
    errno = ENOLCK;
    return -1;
}
