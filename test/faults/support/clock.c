/* Preloaded into a server: its wall clock is off by the number of ms in the file that CLOCK_FILE names, read at every look. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Only system calls: the allocator of the server looks at the clock before it can give memory. */
static long long offset_ms(void) {
  static const char *path;
  char text[32];
  if (!path && !(path = getenv("CLOCK_FILE"))) return 0;
  int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  if (file < 0) return 0;
  long length = syscall(SYS_read, file, text, sizeof text - 1);
  syscall(SYS_close, file);
  if (length <= 0) return 0;
  text[length] = 0;
  return atoll(text);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = syscall(SYS_clock_gettime, clock, time);
  if (result || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  long long ms = time->tv_sec * 1000LL + time->tv_nsec / 1000000 + offset_ms();
  time->tv_sec = ms / 1000;
  time->tv_nsec = ms % 1000 * 1000000 + time->tv_nsec % 1000000;
  return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
