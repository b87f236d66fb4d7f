/*
 * The two copies of the envelope, with power cuts.
 *
 * A change writes the copy that is not in use, syncs, writes the other, and syncs. A write that was not synced may be on the disk
 * after a power cut, or not, or in part: then the copy is torn, which its checksum shows. An opening uses the whole copy with the
 * higher sequence.
 *
 * Models EnvelopeFile.read, write and repair. FORMAT.md: "Envelope".
 *
 * Twins, in each of which Spin must find an error:
 *   -DWITHOUT_FIRST_SYNC   the second copy is written before the first is on the disk
 *   -DWITHOUT_SECOND_SYNC  a change is reported before the second copy is on the disk
 */

#define TORN 255
#define LAST 4

/* The sequences in the two copies, as programs read them, and as they are on the disk. */
byte cached[2] = 1;
byte disk[2] = 1;
/* The last change that was reported as done. */
byte reported = 1;

inline sync() {
  disk[0] = cached[0];
  disk[1] = cached[1]
}

/* A power cut: each copy that is not synced is on the disk, or as it was, or torn. */
inline cut(i) {
  if
  :: cached[i] == disk[i]
  :: cached[i] != disk[i] -> disk[i] = cached[i]
  :: cached[i] != disk[i]
  :: cached[i] != disk[i] -> disk[i] = TORN
  fi;
  cached[i] = disk[i]
}

active proctype Disk() {
  byte used;
  byte newest;

  do
  :: /* An opening. */
     assert(!(cached[0] == TORN && cached[1] == TORN));
     used = (cached[0] == TORN -> 1 : (cached[1] == TORN -> 0 : (cached[1] > cached[0] -> 1 : 0)));
     newest = cached[used];
     assert(newest >= reported);
     if
     :: newest == LAST -> break
     :: else
     fi;
     /* A change, which a power cut may interrupt between any two steps. */
     cached[1 - used] = newest + 1;
     if
     :: cut(0); cut(1)
     :: skip;
#ifndef WITHOUT_FIRST_SYNC
        sync();
#endif
        cached[used] = newest + 1;
        if
        :: cut(0); cut(1)
        :: skip;
#ifndef WITHOUT_SECOND_SYNC
           sync();
#endif
           reported = newest + 1;
           /* A slot that the change removed is in neither copy. */
           assert(disk[0] == reported && disk[1] == reported)
        fi
     fi
  od
}
