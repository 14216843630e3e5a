/*
 * Makes all clocks of one process run $FAST_RATE times as fast, and what waits for them as much shorter. At the moment
 * $FAST_SINCE (true ms since 1970) the wall clock shows $FAST_START (ms since 1970), so processes with the same three agree:
 *   FAST_RATE=10 FAST_SINCE=1790000000000 FAST_START=0 LD_PRELOAD=./fast.so redis-server
 * By system calls only, since it is asked before the allocator is up.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long rate, since_ns, start_ns;

static void know(void) {
  const char *text;
  if (rate) return;
  text = getenv("FAST_SINCE");
  since_ns = (text ? atoll(text) : 0) * 1000000;
  text = getenv("FAST_START");
  start_ns = (text ? atoll(text) : 0) * 1000000;
  text = getenv("FAST_RATE");
  rate = text ? atoll(text) : 1;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, clock, at);
  if (failed) return failed;
  know();
  long long ns = at->tv_sec * 1000000000LL + at->tv_nsec;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      ns = start_ns + (ns - since_ns) * rate;
      break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
      ns *= rate;
      break;
    default:
      return 0;
  }
  at->tv_sec = ns / 1000000000;
  at->tv_nsec = ns % 1000000000;
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

/* Never shorter than asked, or whoever waits for a timer would look at it too early and wait in a circle. */
static int shorter(int ms) {
  know();
  return ms <= 0 ? ms : (int)((ms + rate - 1) / rate);
}

int epoll_pwait(int epoll, struct epoll_event *events, int most, int ms, const sigset_t *mask) {
  return syscall(SYS_epoll_pwait, epoll, events, most, shorter(ms), mask, _NSIG / 8);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int ms) {
  return epoll_pwait(epoll, events, most, ms, NULL);
}
