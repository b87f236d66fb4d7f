/*
 * The commit of a fleet, with pieces, concurrent writers and kills.
 *
 * There are two settings. One writer sets both in a commit with a piece, and its program changes one of them again at any moment; another
 * writer sets that one in a commit of one request; an admin publishes members, and removes the pieces that no head names. The first
 * writer may be killed between any two steps, and starts again with its store, or never. A digest is what it covers. A request to the
 * carrier is applied as a whole, and a reading is as of one revision.
 *
 * At any moment the carrier has all of a commit or none, and no host reports damage. In the end each change is on the carrier, or was
 * replaced by one that knew it, or is in a history, or is still to be pushed. (Fleet.pull reports damage when others have passed it
 * three times; here it reads for ever.)
 *
 * Models Fleet.commit, publish, settleEarlier, finishSettling and make (Fleet+Push.swift), pull, take and pieces (Fleet+Pull.swift), and
 * publish and removeRemains (Fleet+Members.swift). FLEET.md: "Commits".
 *
 * Twins, in each of which Spin must find an error:
 *   -DWITHOUT_CONDITION  a head replaces whatever head there is
 *   -DWITHOUT_ONE_REQUEST  a record is written in a request before that of its head
 *   -DWITHOUT_DIGESTS  a piece that is not there has no changes
 *   -DWITHOUT_SETTLING  a commit follows one whose piece is not settled
 *   -DWITHOUT_ORDER  the head without the piece comes before the records
 *   -DWITHOUT_SAME_HEAD  records are settled whatever head there is
 *   -DWITHOUT_NOTING_LAST  a change counts as pushed before its head is committed
 *   -DWITHOUT_SECOND_LOOK  a writer that settles reports damage if the piece is gone, although another one has settled meanwhile
 *   -DWITHOUT_EARLIER_LISTING  the admin lists what it removes after its commit: a writer that has read that may have staged its pieces
 */

#define LARGE 0
#define SMALL 1
#define ADMIN 2
#define PIECES 6

typedef Head {
  byte number; /* stands for its bytes: no two are the same */
  byte piece;  /* the one that it names; 0 for none */
  byte set[2]  /* the values that it covers */
}

typedef Piece { byte value[2] /* zeros if it is not there */ }

/* The carrier. */
Head head;
byte record[2];
Piece pieces[PIECES + 1];
byte lastPiece;

typedef Store {
  Head head; /* that which it is in step with */
  byte value[2];
  bool isDirty[2] /* changed here, and not pushed */
}

Store store[3];
/* As a bit each: values that were replaced by a change that knew them, or are in a history. Of two, the higher one is the later. */
byte kept;
byte kills = 1;
byte running;

#define MINE store[me]
#define IS_LAST (head.number == MINE.head.number)
#define IS_THERE(piece) (pieces[piece].value[0] != 0)
#ifdef WITHOUT_CONDITION
#define MAY_COMMIT true
#else
#define MAY_COMMIT IS_LAST
#endif
#ifdef WITHOUT_SAME_HEAD
#define MAY_SETTLE(settled) true
#else
#define MAY_SETTLE(settled) (head.number == settled.number)
#endif

inline copy(from, to) {
  to.number = from.number;
  to.piece = from.piece;
  to.set[0] = from.set[0];
  to.set[1] = from.set[1]
}

/* What is no longer looked at makes no states. */
inline clear(it) {
  it.number = 0;
  it.piece = 0;
  it.set[0] = 0;
  it.set[1] = 0
}

/* Where the first writer may be killed; at the end of a step that is taken as a whole. */
inline step() {
  if
  :: me == LARGE && kills > 0 ->
     kills--;
     if
     :: goto start
     :: goto end
     fi
  :: skip
  fi
}

/* A program changes a setting, and knows the value that it replaces. */
inline change(host, index, new) {
  kept = kept | (1 << store[host].value[index]);
  store[host].value[index] = new;
  store[host].isDirty[index] = true
}

/* Reads everything, in two requests, and takes it. */
inline pull() {
  do
  :: IS_LAST -> break
  :: atomic {
       !IS_LAST -> copy(head, view);
       seen[0] = record[0];
       seen[1] = record[1]
     }
     atomic {
       if
       :: view.piece != 0 && IS_THERE(view.piece) ->
          seen[0] = pieces[view.piece].value[0];
          seen[1] = pieces[view.piece].value[1]
#ifndef WITHOUT_DIGESTS
       :: view.piece != 0 && !IS_THERE(view.piece) ->
          /* Something changed while it read; it reads again. */
          assert(head.number != view.number);
          clear(view)
#endif
       :: else
       fi;
       if
       :: view.number == 0
       :: else ->
          assert(seen[0] == view.set[0] && seen[1] == view.set[1]);
          merge(0);
          merge(1);
          copy(view, MINE.head);
          clear(view)
       fi;
       seen[0] = 0;
       seen[1] = 0;
       step()
     }
  od
}

inline merge(index) {
  if
  :: !MINE.isDirty[index] -> MINE.value[index] = seen[index]
  :: MINE.isDirty[index] && MINE.value[index] == seen[index] -> MINE.isDirty[index] = false
  :: MINE.isDirty[index] && MINE.value[index] < seen[index] ->
     kept = kept | (1 << MINE.value[index]);
     MINE.value[index] = seen[index];
     MINE.isDirty[index] = false
  :: MINE.isDirty[index] && MINE.value[index] > seen[index] -> kept = kept | (1 << seen[index])
  fi
}

/* Commits `next` if the head is the last one that this host knows. */
inline commit() {
  if
  :: MAY_COMMIT ->
     next.number = head.number + 1;
     copy(next, head)
  :: else -> goto start
  fi
}

/* The store takes note of the commit, in one transaction. */
inline note() {
  atomic {
    MINE.isDirty[0] = MINE.isDirty[0] && MINE.value[0] != next.set[0];
    MINE.isDirty[1] = MINE.isDirty[1] && MINE.value[1] != next.set[1];
    copy(next, MINE.head);
    clear(next);
    step()
  }
}

inline settleRecord(index, settled) {
  atomic {
    if
    :: MAY_SETTLE(settled) -> record[index] = settled.set[index]
    :: else -> goto start
    fi;
    step()
  }
}

/* Settles the head that the store is in step with, whose piece this host has, from a record on. */
inline settle() {
#ifndef WITHOUT_ORDER
  settleRecord(0, MINE.head);
  settleRecord(1, MINE.head);
#endif
  piece = MINE.head.piece;
  atomic {
    copy(MINE.head, next);
    next.piece = 0;
    commit();
    step()
  }
  note();
#ifdef WITHOUT_ORDER
  settleRecord(0, MINE.head);
  settleRecord(1, MINE.head);
#endif
  atomic {
    remove(piece);
    piece = 0;
    step()
  }
}

/* Removes a piece if the head is the last one that this host knows. */
inline remove(it) {
  if
  :: IS_LAST ->
     pieces[it].value[0] = 0;
     pieces[it].value[1] = 0
  :: else
  fi
}

inline settleEarlier() {
#ifdef WITHOUT_SETTLING
  skip
#else
  if
  :: MINE.head.piece == 0
  :: else ->
     atomic {
       if
       :: IS_THERE(MINE.head.piece)
#ifndef WITHOUT_SECOND_LOOK
       :: !IS_THERE(MINE.head.piece) && !IS_LAST -> goto start
#endif
       :: else -> assert(false) /* "it does not match the head" */
       fi
     }
     settle()
  fi
#endif
}

inline list() {
  atomic {
    for (piece : 1 .. PIECES) { isListed[piece] = IS_THERE(piece) }
    piece = 0
  }
}

inline clean() {
  atomic {
    for (piece : 1 .. PIECES) {
      if
      :: isListed[piece] -> remove(piece)
      :: else
      fi;
      isListed[piece] = false
    }
    piece = 0
  }
}

proctype Host(byte me) {
  Head view;
  Head next;
  byte seen[2];
  byte piece;
  bool isListed[PIECES + 1];

start:
  atomic {
    clear(view);
    clear(next);
    seen[0] = 0;
    seen[1] = 0;
    piece = 0
  }
  pull();
  settleEarlier();
  if
  :: me == SMALL && MINE.isDirty[1] ->
#ifdef WITHOUT_ONE_REQUEST
     atomic {
       if
       :: IS_LAST -> record[1] = MINE.value[1]
       :: else -> goto start
       fi
     }
#endif
     atomic {
       copy(MINE.head, next);
       next.piece = 0;
       next.set[1] = MINE.value[1];
       commit();
       record[1] = next.set[1]
     }
     note()
  :: me == LARGE && (MINE.isDirty[0] || MINE.isDirty[1]) ->
     atomic {
       copy(MINE.head, next);
       next.set[0] = MINE.value[0];
       next.set[1] = MINE.value[1];
#ifdef WITHOUT_NOTING_LAST
       MINE.isDirty[0] = false;
       MINE.isDirty[1] = false;
#endif
       step()
     }
     atomic {
       if
       :: IS_LAST ->
          lastPiece++;
          assert(lastPiece <= PIECES);
          next.piece = lastPiece;
          pieces[lastPiece].value[0] = next.set[0];
          pieces[lastPiece].value[1] = next.set[1]
       :: else -> goto start
       fi;
       step()
     }
     atomic {
       commit();
       step()
     }
     /* Records may be written before the store has taken note. */
     if
     :: settleRecord(0, next)
     :: skip
     fi;
     note();
     settle();
     goto start
  :: me == ADMIN ->
     /* It publishes members, and the set stays. */
#ifndef WITHOUT_EARLIER_LISTING
     list();
#endif
     atomic {
       copy(MINE.head, next);
       next.piece = 0;
       commit()
     }
     note();
#ifdef WITHOUT_EARLIER_LISTING
     list();
#endif
     clean()
  :: else
  fi;
end:
  atomic {
    if
    :: me != LARGE -> clear(MINE.head); MINE.value[0] = 0; MINE.value[1] = 0
    :: else
    fi;
    running--
  }
}

/* The program beside the first writer. */
proctype Program() {
  atomic {
    change(LARGE, 1, 5);
    running--
  }
}

#define IS_SAFE(value) ((kept >> value) & 1)
#define IS_LEFT(index, it) (store[LARGE].isDirty[index] && store[LARGE].value[index] == it)

init {
  atomic {
    head.number = 1;
    head.set[0] = 1;
    head.set[1] = 1;
    record[0] = 1;
    record[1] = 1;
    byte host;
    for (host : 0 .. 2) {
      copy(head, store[host].head);
      store[host].value[0] = 1;
      store[host].value[1] = 1
    }
    host = 0;
    change(LARGE, 0, 2);
    change(LARGE, 1, 3);
    change(SMALL, 1, 4);
    running = 4;
    run Host(LARGE);
    run Host(SMALL);
    run Host(ADMIN);
    run Program()
  }
  running == 0;
  /* What another host sees now. */
  byte final[2];
  atomic {
    final[0] = record[0];
    final[1] = record[1];
    if
    :: head.piece != 0 ->
       assert(IS_THERE(head.piece));
       final[0] = pieces[head.piece].value[0];
       final[1] = pieces[head.piece].value[1]
    :: else
    fi;
    assert(final[0] == head.set[0] && final[1] == head.set[1]);
    assert(final[0] == 2 || IS_SAFE(2) || IS_LEFT(0, 2));
    assert(final[1] == 3 || IS_SAFE(3) || IS_LEFT(1, 3));
    assert(final[1] == 4 || IS_SAFE(4));
    assert(final[1] == 5 || IS_SAFE(5) || IS_LEFT(1, 5))
  }
}
