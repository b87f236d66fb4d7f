/*
 * A new root key, against the holder of a dropped slot who may write the store.
 *
 * The dropped holder kept the envelope from before the rotation: he knows the old root key and the key of the old epoch, and never
 * learns the new ones. After the rotation he may replace the envelope at any moment, by anything that he can compute or copy.
 *
 * Models Envelope.follow, Store.take and StoreWitness.compare (a program that has the store open), EnvelopeChange.replaceRootKey (the
 * rotation, which may be killed before it renews the record) and StoreWitness.check (an opening with a record). FORMAT.md:
 * "Succession", "Witness".
 *
 * Twins, in each of which Spin must find an error:
 *   -DWITHOUT_SUCCESSION  a program follows its slot to whatever root key that wraps
 *   -DWITHOUT_RECORD      an opening accepts another root key than that of the record, if the envelope is no older
 *   -DWITHOUT_COMPARING   a program that was idle does not compare the record before it follows an envelope, or before it writes
 */

/* Keys, by who knows them. */
#define NONE 0
#define OLD 1 /* the dropped holder, too */
#define NEW 2 /* only the owner: made by the rotation */
#define HIS 3 /* made by the dropped holder */
#define JUNK 4 /* a record that does not unwrap */

#ifdef WITHOUT_SUCCESSION
#define IS_VOUCHED_FOR(root) true
#else
#define IS_VOUCHED_FOR(root) (file.voucher == root && file.named == file.root)
#endif
#ifdef WITHOUT_RECORD
#define IS_KNOWN_TO_RECORD true
#else
#define IS_KNOWN_TO_RECORD (file.voucher == record && file.named == file.root)
#endif
#ifdef WITHOUT_COMPARING
#define IS_KNOWN_TO_PROGRAM true
#else
/* The keys of a program read a record under the root key that they follow, or the one before. */
#define IS_KNOWN_TO_PROGRAM (next == record || (file.voucher == record && file.named == next))
#endif

/* The number of envelopes ever written. */
#define MAXIMUM 5

typedef Envelope {
  byte sequence;
  byte root;    /* the root key that its MAC is under */
  byte slot;    /* the root key that the record of the owner's slot wraps */
  byte voucher; /* the root key that `succession` is under */
  byte named;   /* the root key that `succession` names */
  byte epoch[3] /* the keys in the records of epochs 0 to 2; pages are written under the highest one */
}

Envelope file;
/* The root key under which the owner's record is sealed. */
byte record = OLD;
bool isRotated = false;

/* The owner replaces the root key. */
proctype Rotation() {
  atomic {
    file.sequence++;
    file.root = NEW;
    file.slot = NEW;
    file.voucher = OLD;
    file.named = NEW;
    file.epoch[1] = NEW;
    isRotated = true
  }
  if
  :: record = NEW
  :: skip /* it is killed before that */
  fi
}

#define WRONG(n) (file.epoch[n] == JUNK || (file.epoch[n] != NONE && epoch[n] != NONE && file.epoch[n] != epoch[n]))

/* A program that opened the store before the rotation. */
proctype Program() {
  byte root = OLD;
  byte epoch[3];
  byte sequence = 1;
  byte next;
  bool hasFollowed = false; /* whether it has held the new root key */

  epoch[0] = OLD;
  do
  :: atomic {
       /* It takes the write lock. */
       file.sequence > sequence;
       next = NONE;
       if
       :: file.root == root -> next = root
       :: file.root != root && file.slot == file.root && IS_VOUCHED_FOR(root) -> next = file.root
       :: else
       fi;
       if
       :: next == NONE -> break /* refused */
       :: next != NONE && !IS_KNOWN_TO_PROGRAM -> break
       :: else
       fi;
       /* The records of epochs unwrap, and those that are known have the same keys; old ones may be dropped. */
       if
       :: WRONG(0) || WRONG(1) || WRONG(2) -> break
       :: else
       fi;
       root = next;
       sequence = file.sequence;
       epoch[0] = file.epoch[0];
       epoch[1] = file.epoch[1];
       epoch[2] = file.epoch[2];
       /* Its next commit is sealed under the newest epoch. */
       hasFollowed = hasFollowed || root == NEW;
       assert(root != HIS);
       /* Not even if it has missed the new one, once that is remembered. */
       assert(!(record == NEW && root != NEW));
       assert(!hasFollowed || (epoch[2] != NONE -> epoch[2] : epoch[1]) == NEW)
     }
  od
}

/* The owner opens the store again, with the record. */
proctype Opening() {
  byte known;

  do
  :: atomic {
       isRotated;
       known = record;
       if
       :: file.slot != file.root -> break /* damaged: the MAC is not under the key of the slot */
       :: else
       fi;
       if
       :: file.root == record
       :: file.root != record && IS_KNOWN_TO_RECORD -> record = file.root
       :: else -> break /* refused without consent */
       fi;
       assert(!(known == NEW && file.root != NEW));
       assert(file.root != HIS)
     }
  od
}

/* The holder of the dropped slot. */
proctype Holder() {
  do
  :: atomic {
       isRotated && file.sequence < MAXIMUM;
       file.sequence++;
       /* The MAC is under a key that he knows. */
       if
       :: file.root = OLD
       :: file.root = HIS
       fi;
       /* The owner's slot is as in the old envelope, or as in the file. */
       if
       :: file.slot = OLD
       :: skip
       fi;
       /* `succession` is as in the file, or made with a key that he knows. */
       if
       :: skip
       :: file.voucher = OLD; file.named = HIS
       :: file.voucher = HIS; file.named = OLD
       :: file.voucher = OLD; file.named = OLD
       fi;
       if
       :: file.epoch[0] = OLD
       :: file.epoch[0] = NONE
       fi;
       if
       :: file.epoch[1] = HIS
       :: file.epoch[1] = JUNK
       :: file.epoch[1] = NONE
       fi;
       if
       :: file.epoch[2] = HIS
       :: file.epoch[2] = NONE
       fi
     }
  od
}

init {
  atomic {
    file.sequence = 1;
    file.root = OLD;
    file.slot = OLD;
    file.epoch[0] = OLD;
    run Rotation();
    run Program();
    run Opening();
    run Holder()
  }
}
