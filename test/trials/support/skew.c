/*
 * Shifts the wall clock of one process by the ms in the file $SKEW_FILE, which is read again at every look at the clock:
 *   SKEW_FILE=offset LD_PRELOAD=./skew.so redis-server
 * The monotonic clock stays as it is. By system calls only, since it is asked before the allocator is up.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset_ms(void) {
  static char *path;
  static int known;
  char text[32];
  if (!known) {
    path = getenv("SKEW_FILE");
    known = 1;
  }
  if (!path) return 0;
  int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  if (file < 0) return 0;
  long length = syscall(SYS_read, file, text, sizeof text - 1);
  syscall(SYS_close, file);
  if (length <= 0) return 0;
  text[length] = 0;
  return atoll(text);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, clock, at);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  long long ms = at->tv_sec * 1000LL + at->tv_nsec / 1000000 + offset_ms();
  at->tv_sec = ms / 1000;
  at->tv_nsec = ms % 1000 * 1000000 + at->tv_nsec % 1000000;
  return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
