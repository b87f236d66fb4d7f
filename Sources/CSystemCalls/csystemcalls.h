// Calls of Linux that Swift cannot make: their C functions are variadic, or are shown to GNU programs only, or there are
// none. Each returns a negative errno when it fails. Empty elsewhere.
#ifndef COFFER_CSYSTEMCALLS_H
#define COFFER_CSYSTEMCALLS_H

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdint.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

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
