/*
 * Locks: the fast path in JavaScript, the line, hand-over, and the death of a thread at any moment. Three threads, two locks.
 *
 *   npm run spec
 *
 * Each action is named after the function that it stands for:
 *
 *   takeLock, unlock, inherits    lib/holding/word.js
 *   claim, retry, release         core/src/lock/claims.rs
 *   word_changed, wake_first      core/src/lock/bucket.rs
 *   turn                          core/src/lock/fairness.rs; time is left out, so a claim may be late or not
 *   begins_to_wake, retries, remove    core/src/lock/line.rs
 *   withdraw                      withdraw_thread and withdraw_agent, core/src/queue/store.rs
 *   abandon                       core/src/lock/abandoned.rs
 *   end                           Agent::end, src/agent/ending.rs
 *
 * What holds a bucket's lock is one step here. A native call is one step, too: the engine ends a thread in JavaScript only. Each step in
 * JavaScript is one of its own, and the thread may die before each. Memory is sequentially consistent here: orderings are the business of
 * core/tests/model.rs. The service, which looks at all words now and then, is left out: no wake-up may rely on it.
 *
 * Checked: no two threads hold a lock (asserts on `owner`); the next holder sees a death, and only that one (asserts on `died`); a
 * thread that waits, and whose lock is free or gets free, goes on, or else it is in an invalid end state; at the end all is free and
 * nothing is left in a line.
 *
 * What must be found if it is left out: WITHOUT_SECOND_LOOK, WITHOUT_FINISHED_RELEASE, WITHOUT_SUCCESSOR, HANDED_OVER_AND_FREED, NOTE_STAYS,
 * ONLY_THE_FIRST.
 *
 * PROMISE: the last thread awaits, as an event loop does, instead of blocking. BUSY: and its loop never turns.
 */

#define N 3
#define L 2
#define NONE 7

#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif

#ifdef PROMISE
#define BLOCKS(t) ((t) != N - 1)
#else
#define BLOCKS(t) true
#endif
/* The place of a thread's kind among the woken ones: core/src/lock/line.rs, OneOfEach. */
#define KIND(t) (BLOCKS(t) -> 1 : 0)

#define ACQUIRED 1
#define FROM_DEAD 2

/* What is shared. */
bit word[L];
byte counter[L];          /* the waiters that are counted */
bit abandoned[L];         /* notes of deaths */
byte line[6];             /* by lock and place: L * N */
byte length[L];
byte awake[4];            /* by lock and kind: L * 2 */
byte tried[4];
/* By thread. */
byte result[N];           /* what it was given by another one */
bit woken[N];             /* whether it is to retry */
byte releasing[N];        /* the register; a lock, or NONE */
byte table[N];            /* the robust list, as bits */

/* What is known to this specification only. */
byte owner[L];
bit died[L];              /* the last holder died, and no holder has been told */
byte deaths;
byte finished;

byte i, j, first, thread; /* within steps only */

#define PATIENT 0
#define GIVES_UP 1
#define DIES 2

#define IS_HELD_BY(l, t) (owner[l] == t)

inline own (l, t, told) {
  assert(owner[l] == NONE);
  owner[l] = t;
  assert(told == died[l]);
  died[l] = 0
}

inline begins_to_wake (l, t) {
  if
  :: awake[2 * l + KIND(t)] != t -> awake[2 * l + KIND(t)] = t; woken[t] = 1
  :: else
  fi
}

/* Gives `thread`: the first blocked thread behind the first claim; NONE if there is none. */
inline first_thread (l) {
  thread = NONE;
  j = 0;
  do
  :: j < length[l] && thread == NONE ->
    if
    :: BLOCKS(line[N * l + j]) -> thread = line[N * l + j]
    :: else
    fi;
    j++
  :: else -> break
  od
}

inline wake_first (l) {
  if
  :: length[l] > 0 ->
    first = line[N * l];
    if
#ifndef ONLY_THE_FIRST
    :: !BLOCKS(first) ->
      first_thread(l);
      if
      :: thread != NONE -> begins_to_wake(l, thread)
      :: else
      fi
#endif
    :: else
    fi;
    begins_to_wake(l, first)
  :: else
  fi
}

/* Whether it was woken, and so leaves something to its successor, is in `thread` before: NONE if not. */
inline remove (l, t) {
  thread = NONE;
  if
  :: awake[2 * l + KIND(t)] == t -> awake[2 * l + KIND(t)] = NONE; thread = t
  :: else
  fi;
  if
  :: tried[2 * l + KIND(t)] == t -> tried[2 * l + KIND(t)] = NONE; thread = t
  :: else
  fi;
  i = 0;
  do
  :: line[N * l + i] == t -> break
  :: else -> i++
  od;
  do
  :: i + 1 < length[l] -> line[N * l + i] = line[N * l + i + 1]; i++
  :: else -> break
  od;
  length[l]--;
  line[N * l + length[l]] = NONE;
  counter[l]--;
  woken[t] = 0
}

inline grant (l, t, how) {
  remove(l, t);
  result[t] = how;
  own(l, t, how == FROM_DEAD)
}

#define IS_READY(l, t) (BLOCKS(t) || tried[2 * (l) + KIND(t)] == t)

/* `thread`: the claim that may be handed the lock; NONE if it is no claim's turn, however late. */
inline turn (l) {
  thread = NONE;
  if
  :: length[l] > 0 && IS_READY(l, line[N * l]) -> thread = line[N * l]
  :: length[l] > 0 && !IS_READY(l, line[N * l]) -> first_thread(l)
  :: else
  fi
}

/* Of a holder that finds a waiter counted. */
inline release (l, t) {
  assert(owner[l] == t);
  owner[l] = NONE;
  table[t] = table[t] & ~(1 << l);
  turn(l);
  if
  :: thread != NONE ->
    first = thread;
    grant(l, first, ACQUIRED);
#ifdef HANDED_OVER_AND_FREED
    word[l] = 0
#endif
  /* It has not been overtaken for long enough. One that has retried in vain is not overtaken again. */
  :: thread == NONE || tried[2 * l + KIND(thread)] != thread -> word[l] = 0; wake_first(l)
  fi
}

inline abandon (l, t) {
  assert(owner[l] == t);
  owner[l] = NONE;
  died[l] = 1;
  table[t] = table[t] & ~(1 << l);
  if
  :: length[l] > 0 && IS_READY(l, line[N * l]) ->
    /* An earlier note, that the dead thread had not read yet, ends with it. */
#ifndef NOTE_STAYS
    abandoned[l] = 0;
#endif
    first = line[N * l];
    grant(l, first, FROM_DEAD)
  :: else ->
    abandoned[l] = 1;
    word[l] = 0;
    wake_first(l)
  fi
}

inline withdraw (l, t) {
  if
  :: result[t] == 0 ->
    remove(l, t);
    if
#ifndef WITHOUT_SUCCESSOR
    :: thread != NONE -> wake_first(l)
#endif
    :: else
    fi
  :: else
  fi
}

inline inherit (l, t) {
  assert(owner[l] == t);
  assert(abandoned[l] == died[l]);
  abandoned[l] = 0;
  died[l] = 0
}

/* The thread may die before each step in JavaScript. */
#define MAY_DIE if :: deaths < DEATHS -> deaths++; goto dying :: true fi

/* It has the lock, and knows it. */
inline taken (l, t) {
  word[l] = 1;
  table[t] = table[t] | (1 << l);
  assert(owner[l] == NONE);
  owner[l] = t
}

proctype Thread (byte me) {
  byte l = 0;
  byte round = 0;
  bit waits = 0;
  bit has = 0;
  byte mood = 0;             /* of a claim: PATIENT, or it gives up some time, or dies in the line */

next:
  atomic {
    has = 0;
    if
    :: round == ROUNDS -> goto over
    :: round < ROUNDS -> round++
    fi;
    if
    :: l = 0
    :: l = 1
    fi
  }

  /* takeLock: the entry is written before, and counts once the word is taken. */
  atomic {
    MAY_DIE;
    if
    :: word[l] == 0 -> taken(l, me); has = 1
    :: else
    fi
  }
  if
  :: has ->
    /* inherits: reads the counter of notes, and looks them up if there are any. */
    atomic {
      MAY_DIE;
      inherit(l, me);
      goto holds
    }
  :: else
  fi;

  /* claim: counted, then tried once more, then appended. */
  atomic {
    MAY_DIE;
    counter[l]++;
    if
    :: word[l] == 0 -> counter[l]--; taken(l, me); inherit(l, me); goto holds
    :: else -> line[N * l + length[l]] = me; length[l]++; waits = 1
    fi;
    if
    :: mood = PATIENT
    :: mood = GIVES_UP
    :: deaths < DEATHS -> mood = DIES
    fi
  }

waiting:
#ifdef BUSY
  if
  :: !BLOCKS(me) -> goto stuck
  :: else
  fi;
#endif
  if
  :: atomic { result[me] != 0 -> result[me] = 0; waits = 0; mood = 0; table[me] = table[me] | (1 << l) } goto holds
  :: atomic { woken[me] && result[me] == 0 ->
      /* retry */
      woken[me] = 0;
      if
      :: awake[2 * l + KIND(me)] == me ->
        awake[2 * l + KIND(me)] = NONE;
        tried[2 * l + KIND(me)] = me;
        if
        :: word[l] == 0 -> taken(l, me); remove(l, me); waits = 0; mood = 0; inherit(l, me); goto holds
        :: else
        fi
      :: else
      fi;
      goto waiting
    }
  /* Its time is over, or its signal is aborted. */
  :: atomic { mood == GIVES_UP && result[me] == 0 -> withdraw(l, me); waits = 0; mood = 0; goto next }
  :: atomic { mood == DIES && deaths < DEATHS -> deaths++; mood = 0; goto dying }
  fi;

holds:
  /* unlock: the first look at the counter */
  atomic {
    MAY_DIE;
    if
    :: counter[l] != 0 -> release(l, me); goto next
    :: else
    fi
  }
  atomic { MAY_DIE; releasing[me] = l }
  atomic { MAY_DIE; assert(owner[l] == me); owner[l] = NONE; word[l] = 0; table[me] = table[me] & ~(1 << l) }
  /* the second look */
  atomic {
    MAY_DIE;
#ifndef WITHOUT_SECOND_LOOK
    if
    :: counter[l] != 0 -> wake_first(l)
    :: else
    fi
#endif
  }
  atomic { MAY_DIE; releasing[me] = NONE; goto next }

dying:
  /* end: first what it waits for, then what it was given and what it holds, then the release that it was in the midst of. */
  atomic {
    if
    :: waits -> withdraw(l, me); waits = 0
    :: else
    fi
  }
  atomic {
    if
    :: result[me] != 0 -> result[me] = 0; abandon(l, me)
    :: else
    fi
  }
  atomic {
    if
    :: table[me] & 1 -> abandon(0, me)
    :: else
    fi
  }
  atomic {
    if
    :: table[me] & 2 -> abandon(1, me)
    :: else
    fi
  }
#ifndef WITHOUT_FINISHED_RELEASE
  atomic {
    if
    :: releasing[me] != NONE -> wake_first(releasing[me]); releasing[me] = NONE
    :: else
    fi
  }
#endif
  goto over;

#ifdef BUSY
end_stuck:
stuck:
  false;
#endif

over:
  atomic {
    finished++;
    if
    :: finished == N ->
      assert(word[0] == 0 && word[1] == 0);
      assert(length[0] == 0 && length[1] == 0);
      assert(counter[0] == 0 && counter[1] == 0);
      assert(owner[0] == NONE && owner[1] == NONE)
    :: else
    fi
  }
}

init {
  atomic {
    for (i : 0 .. 5) { line[i] = NONE }
    for (i : 0 .. 3) { awake[i] = NONE; tried[i] = NONE }
    for (i : 0 .. L - 1) { owner[i] = NONE }
    for (i : 0 .. N - 1) { releasing[i] = NONE }
    i = 0;
    run Thread(0);
    run Thread(1);
    run Thread(2)
  }
}
