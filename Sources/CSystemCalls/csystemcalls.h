// Calls that Swift cannot make: their C functions are variadic, or are shown to GNU programs only, or are in no module of Swift's, or
// there are none, or, as with fork(2), Swift forbids them. Those of Linux return a negative errno when they fail.
#ifndef COFFER_CSYSTEMCALLS_H
#define COFFER_CSYSTEMCALLS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#include <nss.h>
#endif

// Whether this program has its libraries inside: elf(5), it names no loader
static inline int coffer_is_static(void) {
#if defined(__linux__)
  const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  for (unsigned long index = 0; index < getauxval(AT_PHNUM); index++) {
    if (headers[index].p_type == PT_INTERP) return 0;
  }
  return headers != NULL;
#else
  return 0;
#endif
}

// Users and groups of /etc/passwd and /etc/group alone: nsswitch.conf(5) may name others, which are shared libraries
static inline void coffer_find_users_in_files(void) {
#if defined(__GLIBC__)
  __nss_configure_lookup("passwd", "files");
  __nss_configure_lookup("group", "files");
#endif
}

// Gives memory that this process has freed back to the system: of what a large store needed while it was read, glibc keeps most
static inline void coffer_give_memory_back(void) {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// siginfo_t is a union, whose parts every C library names differently

static inline pid_t coffer_sender(siginfo_t *information) { return information ? information->si_pid : 0; }

// A descriptor that can neither be read nor written, nor can what /dev/fd/N opens then, which is a folder; programs that are started do
// not get it
static inline int coffer_open_nothing(void) {
#if defined(__GLIBC__)
  return open("/", __O_PATH | O_CLOEXEC);
#elif defined(__linux__)
  return open("/", O_PATH | O_CLOEXEC);
#else
  return open("/", O_RDONLY | O_CLOEXEC);
#endif
}

// A program in a process group of its own, which ends with this process: posix_spawn(3) can do the first alone.
//
// `descriptors` holds `count` pairs: a descriptor of this process, and its number in the program. The program's group becomes the
// foreground of the terminal open as `terminal`, unless that is negative. Returns 0, or the errno of the call that failed.
// Between fork(2) and execve(2) it makes only calls that are safe in a signal handler.
static inline int coffer_start_program(pid_t *child, const char *path, char *const *arguments, char *const *environment,
                                       const int *descriptors, int count, int terminal) {
  int report[2];
  if (pipe(report) != 0) return errno;
  fcntl(report[0], F_SETFD, FD_CLOEXEC);
  fcntl(report[1], F_SETFD, FD_CLOEXEC);
  pid_t parent = getpid();
  // The handlers of this process must not run in the new one. Blocking SIGTTOU lets it take the terminal.
  sigset_t all, previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  pid_t id = fork();
  int code = errno;
  if (id == 0) {
    setpgid(0, 0);
    if (terminal >= 0) tcsetpgrp(terminal, getpid());
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(127);
#endif
    int failed = 0;
    for (int index = 0; index < count && !failed; index++) {
      int from = descriptors[2 * index], to = descriptors[2 * index + 1];
      failed = (from == to ? fcntl(to, F_SETFD, 0) : dup2(from, to)) < 0;
    }
    for (int number = 1; number < NSIG; number++) {
      struct sigaction action;
      if (sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL) continue;
      action.sa_handler = SIG_DFL;
      action.sa_flags = 0;
      sigaction(number, &action, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    if (!failed) execve(path, arguments, environment);
    code = errno;
    if (write(report[1], &code, sizeof code) < 0) {
    }
    _exit(127);
  }
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  close(report[1]);
  ssize_t read_count = 0;
  if (id > 0) {
    // Also here, so that the group is there when this returns.
    setpgid(id, id);
    int failure = 0;
    do read_count = read(report[0], &failure, sizeof failure);
    while (read_count < 0 && errno == EINTR);
    if (read_count == sizeof failure) {
      code = failure;
      while (waitpid(id, NULL, 0) < 0 && errno == EINTR) {
      }
    } else {
      code = 0;
      *child = id;
    }
  }
  close(report[0]);
  return code;
}

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdint.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

static inline long coffer_result(long result) { return result < 0 ? -errno : result; }

// prctl(2)

static inline long coffer_set_dumpable(int dumpable) { return coffer_result(prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0)); }

// statx(2)

// When the file was created, in nanoseconds since 1970; 0 where the file system does not say. Links are not followed.
static inline uint64_t coffer_time_of_birth(const char *path) {
  // The kernel's structure, which C libraries declare in different headers: 256 bytes, stx_mask at 0, stx_btime at 80.
  unsigned char status[256];
  uint32_t mask, nanoseconds;
  int64_t seconds;
  memset(status, 0, sizeof status);
  if (syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0x800, status) != 0) return 0;
  memcpy(&mask, status, sizeof mask);
  memcpy(&seconds, status + 80, sizeof seconds);
  memcpy(&nanoseconds, status + 88, sizeof nanoseconds);
  return (mask & 0x800) == 0 || seconds < 0 ? 0 : (uint64_t)seconds * 1000000000u + nanoseconds;
}
// The kernel sends `number` when the thread that started this process ends, whatever ends it; other threads of its process may go on.
static inline long coffer_signal_at_parents_end(int number) { return coffer_result(prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)); }

// Orphans below this process become its children, so that it can wait for them.
static inline long coffer_adopt_orphans(void) { return coffer_result(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); }

// setfsuid(2), setfsgid(2): of the calling thread alone

// The number of no user changes nothing.
static inline uid_t coffer_file_user(void) { return (uid_t)setfsuid((uid_t)-1); }

static inline gid_t coffer_file_group(void) { return (gid_t)setfsgid((gid_t)-1); }

static inline int coffer_set_file_user(uid_t user) {
  setfsuid(user);
  return coffer_file_user() == user ? 0 : -EPERM;
}

static inline int coffer_set_file_group(gid_t group) {
  setfsgid(group);
  return coffer_file_group() == group ? 0 : -EPERM;
}

// getgroups(2), setgroups(2): of the calling thread alone; the C library's function would change all threads

static inline long coffer_groups(gid_t *groups, int count) {
  return coffer_result(syscall(SYS_getgroups, count, groups));
}

static inline long coffer_set_groups(const gid_t *groups, int count) {
  return coffer_result(syscall(SYS_setgroups, count, groups));
}

// unix(7), SO_PEERCRED

static inline long coffer_peer_user(int descriptor, uid_t *user) {
  struct {
    pid_t process;
    uid_t user;
    gid_t group;
  } peer;
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -errno;
  *user = peer.user;
  return 0;
}

// keyrings(7), with keys of the type "user"

static const int coffer_process_keyring = KEY_SPEC_PROCESS_KEYRING;
static const int coffer_user_keyring = KEY_SPEC_USER_KEYRING;

static inline long coffer_add_key(const char *description, const void *payload, size_t size, int keyring) {
  return coffer_result(syscall(SYS_add_key, "user", description, payload, size, keyring));
}

static inline long coffer_update_key(int key, const void *payload, size_t size) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_UPDATE, key, payload, size));
}

static inline long coffer_search_key(int keyring, const char *description) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_SEARCH, keyring, "user", description, 0));
}

static inline long coffer_read_key(int key, void *buffer, size_t size) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_READ, key, buffer, size));
}

static inline long coffer_set_key_permissions(int key, unsigned permissions) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_SETPERM, key, permissions));
}

static inline long coffer_set_key_timeout(int key, unsigned seconds) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, seconds));
}

static inline long coffer_link_key(int key, int keyring) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_LINK, key, keyring));
}

static inline long coffer_unlink_key(int key, int keyring) {
  return coffer_result(syscall(SYS_keyctl, KEYCTL_UNLINK, key, keyring));
}

static inline long coffer_invalidate_key(int key) { return coffer_result(syscall(SYS_keyctl, KEYCTL_INVALIDATE, key)); }

#endif

#endif
