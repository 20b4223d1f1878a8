/* For LD_PRELOAD: reads and writes of files below SHORT_BELOW come back short, as POSIX lets them.
 * SHORT_HOW is "one" for a byte at a time, "half" for half of what is asked, "less" for one byte less.
 * How many calls were made shorter is written to SHORT_COUNT when the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long shortened;

static int is_below(int fd) {
    const char *below = getenv("SHORT_BELOW");
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    return below && length > 0 && strncmp(path, below, strlen(below)) == 0;
}

static size_t shorter(int fd, size_t bytes) {
    const char *how = getenv("SHORT_HOW");
    if (bytes < 2 || !how || !is_below(fd)) return bytes;
    atomic_fetch_add(&shortened, 1);
    return how[0] == 'o' ? 1 : how[0] == 'h' ? bytes / 2 : bytes - 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t read(int fd, void *to, size_t bytes) { return REAL(read)(fd, to, shorter(fd, bytes)); }

ssize_t write(int fd, const void *from, size_t bytes) {
    return REAL(write)(fd, from, shorter(fd, bytes));
}

ssize_t pread64(int fd, void *to, size_t bytes, off64_t at) {
    return REAL(pread64)(fd, to, shorter(fd, bytes), at);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t at) {
    return REAL(pwrite64)(fd, from, shorter(fd, bytes), at);
}

/* Of several buffers only the first is filled, or written. */
ssize_t readv(int fd, const struct iovec *to, int count) {
    return count > 0 ? read(fd, to->iov_base, to->iov_len) : 0;
}

ssize_t writev(int fd, const struct iovec *from, int count) {
    return count > 0 ? write(fd, from->iov_base, from->iov_len) : 0;
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("SHORT_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld\n", atomic_load(&shortened));
    fclose(file);
}
