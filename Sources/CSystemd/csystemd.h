// The D-Bus of libsystemd, and what it takes secrets from.
#ifndef COFFER_CSYSTEMD_H
#define COFFER_CSYSTEMD_H

#include <linux/memfd.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

// A file in memory that can be sealed, or -1; see memfd_create(2), whose declaration needs _GNU_SOURCE.
static inline int coffer_memory_file(void) {
  return (int)syscall(SYS_memfd_create, "secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

#endif
