// What a program that loads this library before its SQLite calls instead of SQLite's own function.
#ifndef COFFER_OPENING_H
#define COFFER_OPENING_H

#include <sqlite3.h>

int sqlite3_open_v2(const char *path, sqlite3 **connection, int flags, const char *vfs);

#endif
