/*
 * The commit of a carrier in a folder, with kills and power cuts.
 *
 * A commit replaces an object and that of its condition, or that one alone. Writers and readers exclude each other by a lock, so they are
 * one process here, which may be killed, and the power cut, between any two steps. After a power cut, what was not synced is on the disk
 * or not: the new name of a file, its removal, its contents, which are then torn.
 *
 * A reader finds all of a commit or none, each one that was reported, and no torn object.
 *
 * Models FileCarrier.commitInTurn and lockForReading, PendingCommit.make, isLeft, complete and apply, and CarrierFolder.put and save.
 *
 * Twins, in each of which Spin must find an error:
 *   -DWITHOUT_PENDING  the changes are applied without being kept together first
 *   -DWITHOUT_SYNC_OF_PENDING  they are applied before what was kept is on the disk
 *   -DWITHOUT_NAME_OF_PENDING  they are applied before its name is
 *   -DWITHOUT_ORDER  the object of the condition is replaced before the other one is on the disk
 *   -DWITHOUT_COMPLETING  what a killed writer has left is not completed
 *   -DWITHOUT_CONDITION  it is completed even if the condition does not hold
 *   -DWITHOUT_SYNC_FIRST  the object of the condition gets its name before its contents are on the disk: it may be torn for good
 *   -DWITHOUT_SYNC_OF_LEFT  what a killed writer has left is completed before it is on the disk
 *   -DWITHOUT_SYNC_OF_CONDITION  a writer follows an object of the condition that a killed one has replaced before that is on the disk
 */

#define TORN 255
#define LAST 5

/* The files: the commit that is being applied, by number, and two objects. */
#define PENDING 0
#define OTHER 1
#define CONDITION 2

/* As programs read them, as they are on the disk whatever happens, and whether the contents of the first are on the disk. 0 is none. */
byte now[3];
byte disk[3];
bool isSynced[3] = true;

typedef Objects { byte other; byte condition }

/* The object that each commit requires; it sets it to its own number. No two are the same, as no two heads are. */
byte required[LAST + 1];

/* What a reader may find: what was reported last, what was found since, and what the commit under way makes. */
Objects reported;
Objects found;
Objects next;
byte number;

inline put(file, value) {
  now[file] = value;
  isSynced[file] = value == 0
}

/* Puts the name of a file on the disk. */
inline syncName(file) {
  if
  :: isSynced[file] -> disk[file] = now[file]
  :: !isSynced[file] -> disk[file] = now[file]
  :: !isSynced[file] -> disk[file] = TORN
  fi
}

inline cut(file) {
  if
  :: now[file] = disk[file]
  :: skip
  :: !isSynced[file] -> now[file] = TORN
  fi;
  disk[file] = now[file];
  isSynced[file] = true
}

/* Where the writer may be killed, or the power cut. */
inline step() {
  if
  :: atomic { cut(PENDING); cut(OTHER); cut(CONDITION) }; goto start
  :: goto start
  :: skip
  fi
}

inline replace(file, value) {
  put(file, value);
  step();
  isSynced[file] = true;
  step();
  syncName(file);
  step()
}

/* The same, for a file that is never seen torn. */
inline replaceSynced(file, value) {
#ifdef WITHOUT_SYNC_FIRST
  replace(file, value)
#else
  atomic { put(file, value); isSynced[file] = true }
  step();
  syncName(file);
  step()
#endif
}

/* All of a commit. */
inline apply(commit) {
#ifdef WITHOUT_ORDER
  put(OTHER, commit);
  step();
  replaceSynced(CONDITION, commit);
  isSynced[OTHER] = true;
  syncName(OTHER)
#else
  replace(OTHER, commit);
  replaceSynced(CONDITION, commit)
#endif
}

inline removePending() {
  put(PENDING, 0);
  step();
  syncName(PENDING);
  step()
}

#ifdef WITHOUT_CONDITION
#define IS_LEFT true
#else
#define IS_LEFT (now[CONDITION] == required[now[PENDING]])
#endif

/* A killed writer may have replaced it, and not put that on the disk. */
inline syncCondition() {
#ifdef WITHOUT_SYNC_OF_CONDITION
  skip
#else
  syncName(CONDITION);
  step()
#endif
}

inline complete() {
#ifdef WITHOUT_COMPLETING
  skip
#else
  if
  :: now[PENDING] == 0 || now[PENDING] == TORN
  :: else ->
     assert(now[CONDITION] != TORN);
     if
     :: IS_LEFT ->
        left = now[PENDING];
#ifndef WITHOUT_SYNC_OF_LEFT
        isSynced[PENDING] = true;
        step();
        syncName(PENDING);
        step();
#endif
        apply(left);
        left = 0
     :: else -> syncCondition()
     fi;
     removePending()
  fi
#endif
}

inline set(objects, first, second) {
  objects.other = first;
  objects.condition = second
}

#define IS(objects) (now[OTHER] == objects.other && now[CONDITION] == objects.condition)

active proctype Folder() {
  byte left;

  atomic {
    now[OTHER] = 1;
    now[CONDITION] = 1;
    disk[OTHER] = 1;
    disk[CONDITION] = 1;
    set(reported, 1, 1);
    set(found, 1, 1);
    set(next, 1, 1);
    number = 1
  }
start:
  left = 0;
  complete();
  atomic {
    /* A reader. */
    assert(now[OTHER] != TORN && now[CONDITION] != TORN);
    assert(IS(reported) || IS(found) || IS(next));
    set(found, now[OTHER], now[CONDITION]);
    set(next, now[OTHER], now[CONDITION]);
    /* A writer that has read the condition. */
    if
    :: number == LAST -> goto end
    :: else
    fi;
    number++;
    required[number] = now[CONDITION];
    next.condition = number
  }
  syncCondition();
  if
  :: next.other = number;
#ifndef WITHOUT_PENDING
     put(PENDING, number);
     step();
#ifndef WITHOUT_SYNC_OF_PENDING
     isSynced[PENDING] = true;
     step();
#endif
#ifndef WITHOUT_NAME_OF_PENDING
     syncName(PENDING);
     step();
#endif
#endif
     apply(number);
     removePending()
  :: replaceSynced(CONDITION, number)
  fi;
  atomic {
    set(reported, next.other, next.condition);
    set(found, next.other, next.condition)
  }
  goto start;
end:
  skip
}
