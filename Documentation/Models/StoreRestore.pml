/*
 * The record of a store outside of it, and a restore, with kills and power cuts.
 *
 * Two programs open the store, commit, keep the record, and close. Meanwhile a restore puts an earlier copy of the file in its place. The
 * restore may be killed, and the power cut, at any moment. After a power cut, what was not synced is on the disk or not: the end of a
 * log, a record, each change of a name. Then the store is opened once more.
 *
 * No opening is refused. The store has all acknowledged commits, or it is the restored one, with those acknowledged since, and the copy of
 * the old one has the others. A log is never applied to another file than its own. Without a power cut, the record refuses everything
 * older than what it was last kept of; a restore that is killed before its rename leaves none until the next commit.
 *
 * Models Store.open and settle, Replacement.place and keepAside, Database.restoreOnce with KeptRecord, checkContents, StoreWitness.check
 * and keep, and FileAnchor.update and replacing. FORMAT.md: "Restoring", "Witness".
 *
 * Twins, in each of which Spin must find an error:
 *   -DWITHOUT_SYNC  a record is kept of a commit that is not on the disk
 *   -DWITHOUT_RECORD_FIRST  an opening reads the record after its snapshot
 *   -DWITHOUT_NEWEST  a record is kept over a newer one
 *   -DWITHOUT_REPLACED_CHECK  a record is kept of a store that was replaced
 *   -DWITHOUT_REMOVAL  the restore leaves the record until it opens the restored store
 *   -DWITHOUT_DURABLE_REMOVAL  it removes the record, and does not sync that
 *   -DWITHOUT_MARK  the copy does not say that it was put in its place
 *   -DWITHOUT_COPY_SYNC  the copy gets the name before it is on the disk
 *   -DWITHOUT_WRITE_LOCK  programs write while the old store is copied
 *   -DWITHOUT_LOG_ASIDE  the old store is copied without its log
 *   -DWITHOUT_NAME_CHECK  a program that gets the write lock does not check that its file still has the name
 *   -DWITHOUT_MARK_LAST  an opening clears the mark before the removal of the log is on the disk
 *   -DWITHOUT_NAME_FIRST  another program's opening removes the log before the rename is on the disk: a power cut may undo only that
 *   -DWITHOUT_RECORD_LOCK  a program may keep the record of a commit from before the restore after that has removed it: the restored store
 *     is refused if the restore was killed after the rename, or if the program was held up between checking the name and writing
 */

#define OLD 0
#define NEW 1
/*
 * A state: 1 to 9 is a commit of the old store, of which the copy has the first; 10 is the restored store, 11 and on are its commits, whose
 * numbers begin at 2. 0 is none, and what is torn.
 */
#define NUMBER(state) (state >= 10 -> state - 9 : state)
/* Whether the change log of a state has the commit of a record. */
#define HAS(state, known) (known <= 1 || known >= 10 && state >= known || known < 10 && state < 10 && state >= known)

/* As programs see it, and as it is on the disk. */
bool name = OLD;
bool nameOnDisk = OLD;
/* The file that the log with this name is of, and its last commit; 0 if there is none. */
bool logOf;
byte log;
byte logOnDisk;
/* What a log had whose removal is not on the disk. */
byte removedLog;
byte record = 2;
byte recordOnDisk = 2;

/* The last commit in each file. */
byte file[2];
/* Whether the copy says that it was put in its place. */
bool isMarked;
bool isCopySynced;
/* The copy of the old store. */
byte aside;

byte connections[2];
bool isLocked[2];
bool isSettling;
/* Whether the restore is between removing the record and the rename: no one keeps a record meanwhile. */
bool isReplacing;

bool isKilled;
bool isCut;
byte running = 3;

/* The last commits that were acknowledged, of each file, and the last one of which a record was kept. */
byte acknowledged[2];
byte lastKept = 2;

#define STATE(it) (log != 0 && logOf == it && log > file[it] -> log : file[it])

/* Opens the file that has the name. */
inline open(accepts) {
  do
  :: atomic { opened = name }
     if
     :: opened == NEW && isMarked -> settle()
     :: else
     fi;
     if
     :: accepts -> atomic { record = 0; recordOnDisk = 0; lastKept = 0 }
     :: else
     fi;
#ifndef WITHOUT_RECORD_FIRST
     known = record;
#endif
     atomic {
       !isSettling;
       if
       :: name == opened ->
          connections[opened]++;
          /* A marked file has no log. */
          assert(log == 0 || logOf == opened || isMarked);
          state = STATE(opened);
          break
       :: else
       fi
     }
  od;
#ifdef WITHOUT_RECORD_FIRST
  known = record;
#endif
  atomic {
    assert(HAS(state, known)); /* otherwise it is refused */
    state = 0;
    known = 0
  }
}

/* Completes a restore while no program has the file open. */
inline settle() {
  atomic { !isMarked || connections[NEW] == 0 && !isSettling -> settles = isMarked; isSettling = isSettling || isMarked }
  if
  :: settles ->
#ifndef WITHOUT_NAME_FIRST
     nameOnDisk = name;
#endif
     atomic { removedLog = log; log = 0; logOnDisk = 0 }
#ifndef WITHOUT_MARK_LAST
     atomic { nameOnDisk = name; removedLog = 0 }
#endif
     atomic { isMarked = false; isSettling = false; settles = false }
  :: else
  fi
}

#ifdef WITHOUT_NAME_CHECK
#define IS_NAMED true
#else
#define IS_NAMED (name == opened)
#endif

/* Commits, acknowledges that, and keeps a record. */
inline commit() {
  atomic {
    !isLocked[opened];
    if
    :: IS_NAMED ->
       isLocked[opened] = true;
       state = STATE(opened) + 1;
       logOf = opened;
       log = state
    :: else -> connections[opened]--; goto start
    fi
  }
#ifdef WITHOUT_SYNC
  keep();
#endif
  atomic { logOnDisk = state; isLocked[opened] = false; acknowledged[opened] = state }
#ifndef WITHOUT_SYNC
  keep();
#endif
  state = 0
}

inline keep() {
#ifdef WITHOUT_RECORD_LOCK
  if
  :: name == opened -> keepUnlocked()
  :: name != opened
  fi
#else
  atomic {
    !isReplacing;
    if
#ifndef WITHOUT_REPLACED_CHECK
    :: name != opened
#endif
    :: else -> keepUnlocked()
    fi
  }
#endif
}

inline keepUnlocked() {
  atomic {
    if
#ifndef WITHOUT_NEWEST
    :: NUMBER(record) >= NUMBER(state)
#endif
    :: else -> record = state
    fi;
    lastKept = (NUMBER(state) > NUMBER(lastKept) -> state : lastKept)
  }
}

inline close() {
  atomic {
    connections[opened]--;
    if
    :: connections[opened] == 0 && name == opened && log != 0 ->
       file[opened] = log;
       log = 0;
       logOnDisk = 0
    :: else
    fi
  }
}

proctype Program() {
  bool opened;
  bool settles;
  byte state;
  byte known;

  {
    skip;
start:
    open(false);
    commit();
    close();
    running--
  } unless { isCut }
}

proctype Restore() {
  bool opened;
  bool settles;
  byte state;
  byte known;
  bool hasLock;

  {
    connections[OLD]++;
    file[NEW] = 10;
    atomic {
#ifndef WITHOUT_MARK
      isMarked = true;
#endif
#ifndef WITHOUT_COPY_SYNC
      isCopySynced = true
#endif
    }
    atomic {
      !isLocked[OLD];
#ifndef WITHOUT_WRITE_LOCK
      isLocked[OLD] = true;
      hasLock = true;
#endif
      if
      :: file[OLD] = STATE(OLD); log = 0; logOnDisk = 0
      :: skip /* a reader keeps the log */
      fi
    }
#ifdef WITHOUT_LOG_ASIDE
    aside = file[OLD];
#else
    aside = STATE(OLD);
#endif
#ifndef WITHOUT_REMOVAL
    atomic {
      record = 0;
      lastKept = 0;
#ifndef WITHOUT_RECORD_LOCK
      isReplacing = true;
#endif
#ifndef WITHOUT_DURABLE_REMOVAL
      recordOnDisk = 0
#endif
    }
#endif
    atomic { name = NEW; isReplacing = false }
    nameOnDisk = NEW;
    atomic { isLocked[OLD] = isLocked[OLD] && !hasLock; hasLock = false; connections[OLD]-- }
    open(true);
start:
    commit();
    close();
    running--
  } unless {
    atomic {
      isKilled || isCut;
      isLocked[OLD] = isLocked[OLD] && !hasLock;
      isSettling = isSettling && !settles;
      isReplacing = false;
      running--
    }
  }
}

proctype Accidents() {
  if
  :: isKilled = true
  :: isCut = true
  :: skip
  fi
}

/* What is on the disk. */
inline cut() {
  if
  :: name = nameOnDisk
  :: skip
  fi;
  if
  :: removedLog != 0 -> log = removedLog; logOf = OLD; logOnDisk = log
  :: skip
  fi;
  if
  :: log = logOnDisk
  :: skip
  fi;
  if
  :: record = recordOnDisk
  :: record = 0
  :: skip
  fi;
  if
  :: !isCopySynced -> file[NEW] = 0
  :: else
  fi
}

init {
  bool opened;

  atomic {
    file[OLD] = 2;
    acknowledged[OLD] = 2;
    run Program();
    run Program();
    run Restore();
    run Accidents()
  }
  atomic {
    (running == 0 || isCut) && _nr_pr == 1;
    if
    :: isCut -> cut()
    :: else -> assert(lastKept <= 1 || !HAS(lastKept - 1, record)) /* what is older is refused */
    fi;
    opened = name;
    if
    :: opened == NEW && isMarked -> log = 0
    :: else
    fi;
    assert(log == 0 || logOf == opened);
    assert(STATE(opened) != 0 && HAS(STATE(opened), record));
    assert(STATE(opened) >= acknowledged[opened]);
    assert(opened == OLD || aside >= acknowledged[OLD])
  }
}
