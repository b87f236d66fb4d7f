/*
 * A new epoch with new keys, against concurrent commits.
 *
 * Two admins publish members, once each: one removes a member, the other renews the keys. Each seals the records under the new keys in a
 * new folder, commits, and removes other folders. A writer commits a change. The member commits as long as it is one; afterwards it still
 * reaches the carrier, and puts a head there that it has signed with its earlier keys, which someone repairs later. A request to the
 * carrier is applied as a whole, and a reading is as of one revision.
 *
 * No host takes what the member writes after its removal. An admin that does not wait for the head fails only if another admin was faster.
 * Each head that is taken has all of its records. In the end the member is removed, the writer's change is in the newest epoch, also
 * if it was cut off, and each host follows and has the same.
 *
 * Models Fleet.edit, publish, reseal and removeRemains (Fleet+Members.swift), pull, currentHead, take, acceptedMembership and relation
 * (Fleet+Pull.swift), follow (Fleet+Run.swift), Merge.isLeft, and MembersEdition. FLEET.md: "Authority", "Commits", "Verifying".
 *
 * Twins, in each of which Spin must find an error:
 *   -DWITHOUT_EPOCH_CHECK  a head counts although there is an authority of the next version
 *   -DWITHOUT_ONE_AUTHORITY  an authority is published even if there is one of its version
 *   -DWITHOUT_NEW_FOLDER  an admin that does not wait for the head keeps the folder
 *   -DWITHOUT_SEALING_FIRST  records are sealed in the new folder after it is published
 *   -DWITHOUT_BASE  an authority does not name the head that it was made on
 *   -DWITHOUT_PUSHING_AGAIN  what a host has pushed and an admin has cut off is not pushed again
 *   -DWITHOUT_LEAVING  a host keeps what others have pushed and an admin has cut off
 *   -DWITHOUT_EARLIER_LISTING  an admin lists what it removes after its commit: another one may be sealing records for a commit of its own
 *   -DWITHOUT_CHECK_OF_READING  the authority is looked for before everything is read, or, in a stream of changes, not at all
 */

#define REMOVER 0
#define RENEWER 1
#define WRITER 2
#define MEMBER 3

/* Changes, as a bit each. */
#define OF_WRITER 1
#define OF_MEMBER 2
#define LATE 4

#define FOLDERS 10

typedef Head {
  byte number;  /* stands for its bytes */
  byte version; /* of the members */
  byte folder;
  byte set;     /* the changes whose records it covers */
  short log     /* the heads before it, as a bit each */
}

typedef Authority {
  bool hasMember;
  byte base /* the head that it was made on */
}

/* The carrier. */
Head head;
byte folders[FOLDERS + 1]; /* the records in each */
Authority authority[4];
byte last = 1; /* the version of the newest authority */

byte lastNumber = 1;
byte lastFolder = 1;

typedef Store {
  Head head;   /* that which it is in step with */
  byte has;    /* changes */
  bool isDirty /* its own is to be pushed */
}

Store store[4];
byte ended;

#define MINE store[me]
#define OWN (me == WRITER -> OF_WRITER : (me == MEMBER -> OF_MEMBER : 0))
#define IS_LAST (head.number == MINE.head.number)
#define IS_IN_LOG(which, it) (which == it.number || ((it.log >> which) & 1))
/* The members that open a head are those of the store, or the newest. A host that refuses a head waits for another one. */
#define OPENS (head.version == MINE.head.version || head.version > MINE.head.version && head.version == last)
#define HAS_NEXT (head.version == MINE.head.version && last > head.version)
#ifdef WITHOUT_EPOCH_CHECK
#define IS_ACCEPTED OPENS
#else
#define IS_ACCEPTED (OPENS && !HAS_NEXT)
#endif

inline copy(from, to) {
  to.number = from.number;
  to.version = from.version;
  to.folder = from.folder;
  to.set = from.set;
  to.log = from.log
}

/* What is no longer looked at makes no states. */
inline clear(it) {
  it.number = 0;
  it.version = 0;
  it.folder = 0;
  it.set = 0;
  it.log = 0
}

/* Takes the head, with what a reading as of this revision has. */
inline take() {
  assert(!(head.set & LATE));
  assert(folders[head.folder] == head.set);
  if
  :: IS_IN_LOG(MINE.head.number, head) -> MINE.has = head.set | (MINE.isDirty -> OWN : 0)
#ifndef WITHOUT_BASE
  :: else ->
     /* Cut off: all heads under later members come after the one that the first of these names. */
     assert(head.version > MINE.head.version && IS_IN_LOG(authority[MINE.head.version + 1].base, head));
#ifndef WITHOUT_PUSHING_AGAIN
     MINE.isDirty = MINE.isDirty || (MINE.has & ~head.set & OWN);
#endif
#ifdef WITHOUT_LEAVING
     MINE.has = MINE.has | head.set
#else
     MINE.has = head.set | (MINE.isDirty -> OWN : 0)
#endif
#else
  :: else -> assert(false) /* two states */
#endif
  fi;
  copy(head, MINE.head)
}

#ifdef WITHOUT_CHECK_OF_READING
#define READ :: atomic { !IS_LAST && IS_ACCEPTED }; atomic { if :: OPENS -> take() :: else fi }
#else
#define READ :: atomic { !IS_LAST && IS_ACCEPTED -> take() }
#endif

/* Replaces the head by one that follows the store's, and takes note of that. */
inline put(newVersion, newFolder, newSet) {
  lastNumber++;
  head.log = MINE.head.log | (1 << MINE.head.number);
  head.number = lastNumber;
  head.version = newVersion;
  head.folder = newFolder;
  head.set = newSet
}

/* Pushes the own change, in one request. */
inline push() {
  put(MINE.head.version, MINE.head.folder, MINE.head.set | OWN);
  folders[head.folder] = folders[head.folder] | OWN;
  copy(head, MINE.head);
  MINE.has = MINE.has | OWN;
  MINE.isDirty = false
}

proctype Writer(byte me) {
  do
  READ
  :: atomic { MINE.isDirty && IS_LAST -> push() }
  :: atomic { ended == 3 && !MINE.isDirty && IS_LAST -> break }
  od
}

proctype Member(byte me) {
  byte left = 1;
  Head right;

  do
  :: atomic { !IS_LAST && IS_ACCEPTED && authority[head.version].hasMember -> take() }
  :: atomic { left > 0 && IS_LAST -> left--; push() }
  :: atomic { !authority[last].hasMember -> break }
  od;
  left = 0;
  if
  :: atomic {
       /* A head that follows the last one that it has. */
       copy(head, right);
       lastNumber++;
       head.number = lastNumber;
       head.version = MINE.head.version;
       head.folder = MINE.head.folder;
       head.set = MINE.head.set | LATE;
       head.log = MINE.head.log | (1 << MINE.head.number);
       folders[head.folder] = head.set;
       clear(MINE.head)
     }
     atomic {
       /* Someone puts the carrier right. */
       if
       :: head.set & LATE -> copy(right, head)
       :: else
       fi;
       clear(right)
     }
  :: atomic { clear(MINE.head) }
  fi;
  ended++
}

#ifdef WITHOUT_ONE_AUTHORITY
#define MAY_PUBLISH (isPolite -> IS_LAST : true)
#else
#define MAY_PUBLISH (isPolite -> IS_LAST : last == MINE.head.version)
#endif

/* Another one has committed meanwhile. Once is enough to be waited for. */
inline giveWay() {
  assert(isPolite || last > MINE.head.version);
  isPolite = false;
  folder = 0;
  goto start
}

inline seal(records) {
  if
  :: MAY_PUBLISH -> folders[folder] = folders[folder] | (MINE.head.set & (records))
  :: else -> giveWay()
  fi
}

proctype Admin(byte me) {
  bool isPolite = true;
  byte folder;
  byte listed;
  byte number;

start:
  do
  READ
  :: atomic { IS_LAST -> break }
  od;
#ifdef WITHOUT_NEW_FOLDER
  folder = (isPolite -> 0 : MINE.head.folder);
#endif
  atomic {
    if
    :: folder == 0 ->
       lastFolder++;
       folder = lastFolder;
       assert(folder <= FOLDERS)
    :: else
    fi;
#ifndef WITHOUT_SEALING_FIRST
    seal(OF_WRITER)
  }
  atomic {
    seal(OF_MEMBER | LATE)
#endif
  }
#ifndef WITHOUT_EARLIER_LISTING
  listed = lastFolder;
#endif
  atomic {
    if
    :: MAY_PUBLISH ->
       number = MINE.head.version + 1;
       last = number;
       authority[last].hasMember = authority[MINE.head.version].hasMember && me != REMOVER;
       authority[last].base = MINE.head.number;
       put(last, folder, MINE.head.set);
       number = lastNumber
    :: else -> giveWay()
    fi
  }
#ifdef WITHOUT_SEALING_FIRST
  atomic { folders[folder] = MINE.head.set }
#endif
  atomic {
    /* The store takes note. */
    MINE.head.log = MINE.head.log | (1 << MINE.head.number);
    MINE.head.number = number;
    MINE.head.version++;
    MINE.head.folder = folder;
    number = 0
  }
#ifdef WITHOUT_EARLIER_LISTING
  listed = lastFolder;
#endif
  atomic {
    if
    :: IS_LAST ->
       for (number : 1 .. listed) {
         if
         :: number != folder -> folders[number] = 0
         :: else
         fi
       }
    :: else
    fi;
    number = 0;
    folder = 0;
    listed = 0
  }
  ended++
}

init {
  byte me;

  atomic {
    head.number = 1;
    head.version = 1;
    head.folder = 1;
    authority[1].hasMember = true;
    for (me : 0 .. 3) { copy(head, store[me].head) }
    me = 0;
    store[WRITER].isDirty = true;
    store[WRITER].has = OF_WRITER;
    run Admin(REMOVER);
    run Admin(RENEWER);
    run Writer(WRITER);
    run Member(MEMBER)
  }
  atomic {
    _nr_pr == 1;
    assert(!authority[last].hasMember && head.version == last);
    assert(head.set & OF_WRITER);
    assert(folders[head.folder] == head.set);
    for (me : REMOVER .. WRITER) {
      if
      :: !IS_LAST -> take()
      :: else
      fi;
      assert(MINE.has == head.set)
    }
  }
}
