// The two things that must happen around the opening of a connection, and that no hook of SQLite offers: the VFS is
// registered before the first one, and not earlier, because a program may call sqlite3_config() only until SQLite is
// initialized; and each new database keeps the end of its pages free.
#define _GNU_SOURCE
#include "opening.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

// In CofferPreload.
void coffer_preload_register(void);
int coffer_preload_reserve(void);

typedef int (*open_function)(const char *, sqlite3 **, int, const char *);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static open_function open_of_sqlite;

static void prepare(void) {
  open_of_sqlite = (open_function)dlsym(RTLD_NEXT, "sqlite3_open_v2");
  if (open_of_sqlite == NULL) abort();
  coffer_preload_register();
}

int sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *vfs) {
  pthread_once(&once, prepare);
  int code = open_of_sqlite(path, connection, flags, vfs);
  if (code == SQLITE_OK) {
    // Counts for a database without pages; all others say so in their first one. As ext/misc/cksumvfs.c of SQLite does.
    int reserve = coffer_preload_reserve();
    sqlite3_file_control(*connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
  }
  return code;
}
