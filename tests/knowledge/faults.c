/* A disk that fails on demand: loaded before libc, it lets a counted write to a chosen file fail with a chosen error.

   Calls that write, sync, or change the length of a file whose path holds a given text are counted from 0; the one with
   the given number fails, and all after it too if the disk stays broken. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char needle[256];
static long fail_at = -1, calls = 0;
static int failure = 0, stays = 0;

void fault_arm(const char *text, long at, int error, int stays_broken) {
    strncpy(needle, text, sizeof needle - 1);
    fail_at = at, failure = error, stays = stays_broken, calls = 0;
}

long fault_disarm(void) {
    needle[0] = '\0';
    return calls;
}

static int fails(int fd) {
    char link[64], path[PATH_MAX];
    if (!needle[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    if (!strstr(path, needle)) return 0;
    long call = calls++;
    if (fail_at < 0 || call < fail_at || (call > fail_at && !stays)) return 0;
    errno = failure;
    return 1;
}

#define FAULTY(result, name, parameters, arguments)                        \
    result name parameters {                                               \
        static result(*real) parameters;                                   \
        if (!real) real = (result(*) parameters)dlsym(RTLD_NEXT, #name);   \
        return fails(fd) ? -1 : real arguments;                            \
    }

FAULTY(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
FAULTY(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
FAULTY(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at))
FAULTY(int, ftruncate, (int fd, off_t length), (fd, length))
FAULTY(int, ftruncate64, (int fd, off64_t length), (fd, length))
FAULTY(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
FAULTY(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
FAULTY(int, fsync, (int fd), (fd))
FAULTY(int, fdatasync, (int fd), (fd))
