// The system's SQLite, with wrappers for what Swift cannot import: variadic functions, function-pointer casts and
// compound macros.
#ifndef COFFER_CSQLITE_H
#define COFFER_CSQLITE_H

#include <sqlite3.h>
#include <stddef.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <mach/mach.h>
#endif

#if SQLITE_VERSION_NUMBER < 3040000
#error "Coffer needs SQLite 3.40 or later"
#endif

// Extended result codes: https://www.sqlite.org/rescode.html
static const int COFFER_OK_LOAD_PERMANENTLY = SQLITE_OK_LOAD_PERMANENTLY;
static const int COFFER_IOERR_READ = SQLITE_IOERR_READ;
static const int COFFER_IOERR_SHORT_READ = SQLITE_IOERR_SHORT_READ;
static const int COFFER_IOERR_WRITE = SQLITE_IOERR_WRITE;
static const int COFFER_IOERR_FSYNC = SQLITE_IOERR_FSYNC;
static const int COFFER_IOERR_TRUNCATE = SQLITE_IOERR_TRUNCATE;
static const int COFFER_IOERR_FSTAT = SQLITE_IOERR_FSTAT;
static const int COFFER_IOERR_LOCK = SQLITE_IOERR_LOCK;
static const int COFFER_IOERR_NOMEM = SQLITE_IOERR_NOMEM;
static const int COFFER_IOERR_AUTH = SQLITE_IOERR_AUTH;
static const int COFFER_IOERR_DATA = SQLITE_IOERR_DATA;
static const int COFFER_IOERR_CORRUPTFS = SQLITE_IOERR_CORRUPTFS;
static const int COFFER_CANTOPEN_SYMLINK = SQLITE_CANTOPEN_SYMLINK;
static const int COFFER_READONLY_RECOVERY = SQLITE_READONLY_RECOVERY;
static const int COFFER_READONLY_CANTINIT = SQLITE_READONLY_CANTINIT;
static const int COFFER_CONSTRAINT_PRIMARYKEY = SQLITE_CONSTRAINT_PRIMARYKEY;

// "Must be called … with arguments … appropriate for the op": https://www.sqlite.org/c3ref/db_config.html
static inline int coffer_db_config_int(sqlite3 *db, int op, int value) {
  return sqlite3_db_config(db, op, value, (int *)0);
}

// The same of another library, whose sqlite3_db_config is at `function`: variadic functions have calling conventions of
// their own.
static inline void coffer_call_db_config(void *function, sqlite3 *db, int op, int value) {
  ((int (*)(sqlite3 *, int, ...))function)(db, op, value, (int *)0);
}

static inline void coffer_log(int code, const char *message) { sqlite3_log(code, "%s", message); }

// SQLITE_TRANSIENT and SQLITE_STATIC are casts of integers to function pointers.
static inline int coffer_bind_text(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 count) {
  return sqlite3_bind_text64(statement, index, text, count, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static inline int coffer_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
  // A null pointer would bind NULL; empty bytes are a value.
  if (count == 0) return sqlite3_bind_zeroblob(statement, index, 0);
  return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}

// For bytes that outlive the statement's step: no copy is made.
static inline int coffer_bind_text_static(sqlite3_stmt *statement, int index, const char *text, sqlite3_uint64 count) {
  return sqlite3_bind_text64(statement, index, text, count, SQLITE_STATIC, SQLITE_UTF8);
}

static inline int coffer_bind_blob_static(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
  if (count == 0) return sqlite3_bind_zeroblob(statement, index, 0);
  return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_STATIC);
}

// Maps pages of shared memory a second time, without a descriptor: to close one of the wal-index would drop SQLite's locks
// on it. Null when that fails.
static inline void *coffer_map_again(void *pages, size_t count) {
#if defined(__linux__)
  // "If the value of old_size is zero, and old_address refers to a shareable mapping … then mremap() will create a new
  // mapping of the same pages": mremap(2). The flag is MREMAP_MAYMOVE.
  long address = syscall(SYS_mremap, pages, (size_t)0, count, 1);
  return address == -1 ? (void *)0 : (void *)address;
#elif defined(__APPLE__)
  vm_address_t address = 0;
  vm_prot_t protection, maximum;
  kern_return_t code = vm_remap(
      mach_task_self(), &address, count, 0, VM_FLAGS_ANYWHERE, mach_task_self(), (vm_address_t)pages, 0, &protection,
      &maximum, VM_INHERIT_SHARE);
  return code == KERN_SUCCESS ? (void *)address : (void *)0;
#else
  return (void *)0;
#endif
}

#endif
