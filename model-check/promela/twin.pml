/* The core of models 1 and 2 of docs/rules/09: creation against the barrier, and the job behind it.
 * Written from the rules, not from the kernel; src/twin asks the kernel about the same system and
 * must reach the same states.
 *
 * Task A owns an environment with one slot and has NS-1 sessions; task B has one, which borrows.
 * One maker, one archive of A with its job, one worker, one recovery, people, time and crashes.
 *
 *   default    one process, every action one d_step: counts, sets, speed
 *   ACTORS     one process per actor: liveness under weak fairness (P-40, P-41, P-42, P-46)
 *   PRINT      every state that an action leads to is printed as a line of numbers
 *   BUG_PERSIST_IGNORES_BARRIER   W-3 without its barrier check: must be found
 *   NO_RESCUE, NO_BARRIER_RECOVERY, NO_ATTEMPT_RECOVERY, NO_TAKE_OVER
 *              one recovery is missing: its liveness row must fail
 */

#ifndef NS
#define NS 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef SLOW
#define SLOW 1
#endif
#define OWN (NS - 1)                    /* sessions of A: at most 3 */

/* A session of A (D-6, S-20..S-24, T-6): absent, open, closing (to be deleted), gone for ever,
 * archived by the operation, closing out of the archive, open again, closing again. */
#define S_NONE 0
#define S_OPEN 1
#define S_CLOSING 2
#define S_GONE 3
#define S_ARCHIVED 4
#define S_CLOSING_ARCHIVED 5
#define S_AGAIN 6
#define S_CLOSING_AGAIN 7

/* The attempt (W-1..W-5). */
#define A_NONE 0
#define A_INTENDED 1
#define A_MATERIALISED 2
#define A_OWNED 3
#define A_COMPENSATING 4
#define A_COMPENSATED 5
/* Who has the attempt's token: its maker; nobody, since the mutation gave a new one (B-5); recovery. */
#define H_MAKER 0
#define H_VOID 1
#define H_RECOVERY 2

/* The repository row: none, materialised, removing, not materialised (D-4, C-6, C-18). */
#define R_NONE 0
#define R_YES 1
#define R_REMOVING 2
#define R_NO 3

/* The worktree on disk. */
#define D_NONE 0
#define D_HOME 1
#define D_TRASH 2
#define D_GONE 3

/* The job up to its activation; after it the state follows from its parts (C-1). */
#define J_NONE 0
#define J_PREPARED 1
#define J_SNAPSHOT 2
#define J_ABORTED 3                     /* cancelled before the snapshot */
#define J_ABORTED_SNAPSHOT 4            /* cancelled after it, before the mutation */
#define J_ACTIVE 5
#define J_CANCELLED 6                   /* by unarchive (B-8) */

/* The part of the job that lies in no root: has nothing to do, but a worker ends it. */
#define P_PENDING 0
#define P_RUNNING 1
#define P_LAPSED 2
#define P_SUCCEEDED 3
#define P_CANCELLED 4                   /* never claimed */
#define P_CANCELLED_1 5                 /* claimed */

/* The part in the root: state and tries, at most two (C-2). */
#define Q_PENDING 0
#define Q_PENDING_1 1                   /* put back out of the second try (C-17) */
#define Q_RUNNING_1 2
#define Q_RUNNING_2 3
#define Q_LAPSED_1 4
#define Q_LAPSED_2 5
#define Q_WAIT_1 6
#define Q_SUCCEEDED_1 7
#define Q_SUCCEEDED_2 8
#define Q_FAILED_2 9
#define Q_CANCELLED 10
#define Q_CANCELLED_1 11
#define Q_CANCELLED_2 12

/* The snapshot's one resource: an attempt or a worktree, with result and reason (B-4, C-13). */
#define X_NONE 0
#define X_ATTEMPT 1                     /* waiting */
#define X_ATTEMPT_ALIVE 2               /* waiting: its maker may live */
#define X_ATTEMPT_DONE 3
#define X_ATTEMPT_FAILED 4              /* tries spent */
#define X_ATTEMPT_FAILED_ALIVE 5
#define X_TREE 6                        /* waiting */
#define X_TREE_IN_USE 7                 /* waiting: somebody stands in it */
#define X_TREE_REMOVING 8
#define X_TREE_REMOVED 9
#define X_TREE_PRESERVED 10             /* borrowed (C-5) */
#define X_TREE_KEPT 11                  /* its authority went (C-18) */
#define X_TREE_FAILED 12                /* tries spent */
#define X_TREE_FAILED_IN_USE 13

/* The removal row: its last step that is done (W-35). */
#define M_NONE 0
#define M_PERMITTED 1
#define M_SALVAGED 2                    /* with its trash row */
#define M_RENAMED 3
#define M_COMPARED 4
#define M_UNREGISTERED 5
#define M_BRANCH 6
#define M_PURGED 7
#define M_RETURNED 8
#define M_RETURNED_AT_ONCE 9            /* before there was a trash row */
/* Who has the removal's token: the worker, the worker past its lease, recovery. Every takeover is
 * under a new token (C-18); two that take turns are enough to be new each time. */
#define T_WORKER 0
#define T_LAPSED 1
#define T_RECOVERY 2
#define T_RECOVERY_AGAIN 3

byte s[3];
unsigned borrower : 2;                  /* S_NONE .. S_GONE */
unsigned primary : 2;                   /* S-6: 0 none, else the session's number + 1 */
bit archived;
bit unarchived;                         /* a person unarchived it, once */
unsigned attempt : 3;
unsigned holder : 2;
bit attempt_lapsed;
unsigned repo : 2;
unsigned disk : 2;
unsigned job : 3;
bit barrier_lapsed;
unsigned part0 : 3;
unsigned part1 : 4;
unsigned resource : 4;
unsigned removal : 4;
unsigned remover : 2;
unsigned executor : 2;                  /* 0 none, 1 has a warrant, 2 did the step */
bit back;                               /* the warrant is one to put back (C-18) */
unsigned operator : 3;                  /* 0 not begun, 1 reserved, 2 has the snapshot, 3 must abort, 4 ended, 5 dead */
unsigned maker : 3;                     /* 0 not begun, 1 recorded, 2 has the lock, 3 made, 4 said so, 5 ended, 6 dead */
unsigned worker : 2;                    /* 0 idle, 1 claimed part 0, 2 claimed part 1 */
unsigned crashes : 2 = CRASHES;
unsigned slow : 2 = SLOW;
bit retried;

#define barred (job == J_PREPARED || job == J_SNAPSHOT)
#define welcome (!archived && !barred)  /* B-2, S-3 */
#define open_attempt (attempt == A_INTENDED || attempt == A_MATERIALISED)
#define unresolved (open_attempt || attempt == A_COMPENSATING)
#define maker_holds (maker == 2 || maker == 3 || maker == 4)
#define path_free (executor == 0 && !maker_holds)                  /* W-13 */
#define lent (borrower == S_OPEN || borrower == S_CLOSING)         /* D-6 */
#define unsettled (removal >= M_PERMITTED && removal <= M_BRANCH)
#define worker_busy (executor != 0 && remover < T_RECOVERY)
#define claimed0 (part0 == P_RUNNING)
#define claimed1 (part1 == Q_RUNNING_1 || part1 == Q_RUNNING_2)
#define left (resource == X_ATTEMPT || resource == X_ATTEMPT_ALIVE || resource == X_TREE || resource == X_TREE_IN_USE || resource == X_TREE_REMOVING)
#define unfinished (job == J_ACTIVE && (part0 <= P_LAPSED || (resource != X_NONE && part1 <= Q_WAIT_1)))
#define failed (job == J_ACTIVE && part0 == P_SUCCEEDED && part1 == Q_FAILED_2)
#define is_open(i) (s[i] == S_OPEN || s[i] == S_AGAIN)
/* C-18: a compensation's own right stands; a job's while it is not cancelled and its archive stands. */
#define stands (attempt == A_COMPENSATING || (job != J_CANCELLED && archived))
#define can_return (removal <= M_COMPARED)
#define trash_row (removal >= M_SALVAGED && removal <= M_BRANCH)

#ifdef PRINT
c_code {
  static int begun;
  static void line(void) {
    printf("= %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n",
      now.s[0], now.s[1], now.s[2], now.borrower, now.primary, now.archived, now.unarchived,
      now.attempt, now.holder, now.attempt_lapsed, now.repo, now.disk, now.job,
      now.barrier_lapsed, now.part0, now.part1, now.resource, now.removal, now.remover,
      now.executor, now.back, now.operator, now.maker, now.worker, now.crashes, now.slow,
      now.retried);
  }
};
#define FIRST c_code { if (!begun) { begun = 1; line(); } };
#define SHOW c_code { line(); };
#else
#define FIRST
#define SHOW
#endif

/* What holds in every state (09). */
inline look() {
  /* P-3 NoUntrackedWorktree */
  assert(!(disk == D_HOME || disk == D_TRASH) || repo != R_NONE || unresolved
    || (disk == D_TRASH && trash_row));
  /* P-5 OneOwner: an owned row and an unresolved attempt never stand for one slot */
  assert(!(unresolved && repo != R_NONE));
  /* P-6 BarrierOrdersCreation: what came before the barrier is in the snapshot */
  assert(!(archived && (unresolved || attempt == A_OWNED)) || resource != X_NONE);
  assert(!(archived && attempt == A_OWNED) || resource >= X_TREE);
  /* P-7 SnapshotBeforeMutation, P-8 MutationIsActivation */
  assert(archived == (job == J_ACTIVE && !unarchived));
  assert(job != J_CANCELLED || unarchived);
  /* P-18: no primary that is closed */
  assert(primary == 0 || (s[primary - 1] != S_NONE && s[primary - 1] != S_GONE
    && s[primary - 1] != S_ARCHIVED && s[primary - 1] != S_CLOSING_ARCHIVED));
  /* P-33 RemovalIsSettled */
  assert((repo == R_REMOVING) == (unsettled && attempt == A_OWNED));
  /* P-11: what is not at home has a removal */
  assert(!(disk == D_TRASH || disk == D_GONE) || removal >= M_SALVAGED);
  SHOW
}

/* P-4 NoLiveWorkspaceRemoved, P-10 BorrowedIsKept, P-14 UnarchiveStopsCleanup: looked at when a
 * warrant is given whose step goes forward and could still be put back. */
inline granted() {
  back = (can_return && !stands);
  executor = 1;
  assert(back || !can_return || attempt == A_COMPENSATING || (archived && !lent && !unarchived));
}

/* S-6: the newest open one; of one age, the smallest id. */
inline promote() {
  primary = (is_open(0) -> 1 : (is_open(1) -> 2 : (is_open(2) -> 3 : 0)));
}

/* C-2, C-8: what is left decides. */
inline end_claim() {
  if
  :: left && (part1 == Q_RUNNING_1 || part1 == Q_LAPSED_1) -> part1 = Q_WAIT_1
  :: left && (part1 == Q_RUNNING_2 || part1 == Q_LAPSED_2) ->
     part1 = Q_FAILED_2;
     if
     :: resource == X_ATTEMPT -> resource = X_ATTEMPT_FAILED
     :: resource == X_ATTEMPT_ALIVE -> resource = X_ATTEMPT_FAILED_ALIVE
     :: resource == X_TREE -> resource = X_TREE_FAILED
     :: resource == X_TREE_IN_USE -> resource = X_TREE_FAILED_IN_USE
     :: else
     fi
  :: !left && (part1 == Q_RUNNING_1 || part1 == Q_LAPSED_1) -> part1 = Q_SUCCEEDED_1
  :: !left && (part1 == Q_RUNNING_2 || part1 == Q_LAPSED_2) -> part1 = Q_SUCCEEDED_2
  fi
}

inline lift_barrier() {
  if
  :: job == J_PREPARED -> job = J_ABORTED
  :: job == J_SNAPSHOT -> job = J_ABORTED_SNAPSHOT
  :: else
  fi;
  barrier_lapsed = 0
}

/* The operation's owner (B-1, B-4, B-5, B-7). */
inline reserve() { d_step { operator == 0 -> FIRST job = J_PREPARED; operator = 1; look() } }
inline snapshot() { d_step { operator == 1 ->
  if
  :: job == J_PREPARED && !barrier_lapsed ->
     job = J_SNAPSHOT;
     if
     :: unresolved -> resource = X_ATTEMPT
     :: repo == R_YES -> resource = X_TREE
     :: else
     fi;
     operator = 2
  :: else -> operator = 3
  fi; look() } }
inline mutate() { d_step { operator == 2 ->
  if
  :: job == J_SNAPSHOT && !barrier_lapsed ->
     job = J_ACTIVE; archived = 1; primary = 0;
     /* T-6: sessions are closed in the same step, a closing mark is taken over. */
     if :: s[0] == S_OPEN || s[0] == S_CLOSING -> s[0] = S_ARCHIVED :: else fi;
     if :: s[1] == S_OPEN || s[1] == S_CLOSING -> s[1] = S_ARCHIVED :: else fi;
     if :: s[2] == S_OPEN || s[2] == S_CLOSING -> s[2] = S_ARCHIVED :: else fi;
     /* B-5: open attempts of the snapshot turn to compensating, with new tokens. */
     if
     :: open_attempt && resource == X_ATTEMPT -> attempt = A_COMPENSATING; holder = H_VOID
     :: else
     fi;
     operator = 4
  :: else -> operator = 3
  fi; look() } }
inline abort() { d_step { operator >= 1 && operator <= 3 -> lift_barrier(); operator = 4; look() } }
inline operator_dies() { d_step { operator >= 1 && operator <= 3 && crashes > 0 ->
  operator = 5; crashes--; look() } }

/* The maker (W-1..W-5). */
inline begin() { d_step { maker == 0 ->
  if
  :: welcome -> attempt = A_INTENDED; maker = 1
  :: else -> maker = 5
  fi; look() } }
inline lock() { d_step { maker == 1 && executor == 0 ->
  /* W-5: the token is checked under the path lock. */
  if
  :: holder == H_MAKER && open_attempt -> attempt_lapsed = 0; maker = 2
  :: else -> maker = 5
  fi; look() } }
inline make() { d_step { maker == 2 -> disk = D_HOME; maker = 3; look() } }
inline say_made() { d_step { maker == 3 ->
  if
  :: holder == H_MAKER && open_attempt -> attempt = A_MATERIALISED; maker = 4
  :: else -> maker = 5
  fi; look() } }
inline persist() { d_step { maker == 4 ->
  if
  :: holder == H_MAKER && attempt == A_MATERIALISED ->
     if
#ifdef BUG_PERSIST_IGNORES_BARRIER
     :: !archived && (repo == R_NONE || repo == R_NO) -> attempt = A_OWNED; repo = R_YES
#else
     :: welcome && (repo == R_NONE || repo == R_NO) -> attempt = A_OWNED; repo = R_YES
#endif
     :: else -> attempt = A_COMPENSATING
     fi
  :: else
  fi;
  maker = 5; look() } }
inline give_up() { d_step { maker == 1 || maker == 3 ->
  if
  :: holder == H_MAKER && open_attempt -> attempt = A_COMPENSATING
  :: else
  fi;
  maker = 5; look() } }
inline maker_dies() { d_step { maker >= 1 && maker <= 4 && crashes > 0 -> maker = 6; crashes--; look() } }

/* People: sessions (S-2, S-20..S-24), a borrower (W-23), unarchive (B-8), retry by hand (C-2). */
inline create(i) { d_step { s[i] == S_NONE && welcome ->
  s[i] = S_OPEN;
  if :: primary == 0 -> primary = i + 1 :: else fi;
  look() } }
inline begin_close(i) { d_step { s[i] == S_OPEN || s[i] == S_ARCHIVED || s[i] == S_AGAIN ->
  s[i] = s[i] + 1; look() } }
inline abort_close(i) { d_step { s[i] == S_CLOSING || s[i] == S_CLOSING_ARCHIVED || s[i] == S_CLOSING_AGAIN ->
  s[i] = s[i] - 1; look() } }
inline commit_close(i) { d_step { s[i] == S_CLOSING || s[i] == S_CLOSING_ARCHIVED || s[i] == S_CLOSING_AGAIN ->
  s[i] = S_GONE;
  if :: primary == i + 1 -> promote() :: else fi;
  look() } }
inline borrow() { d_step { borrower == S_NONE && welcome && repo != R_REMOVING -> borrower = S_OPEN; look() } }
inline begin_return() { d_step { borrower == S_OPEN -> borrower = S_CLOSING; look() } }
inline abort_return() { d_step { borrower == S_CLOSING -> borrower = S_OPEN; look() } }
inline commit_return() { d_step { borrower == S_CLOSING -> borrower = S_GONE; look() } }
inline reopen(i) { if :: s[i] == S_ARCHIVED -> s[i] = S_AGAIN :: else fi }
inline unarchive() { d_step { archived && !unarchived ->
  archived = 0; unarchived = 1;
  if
  :: unfinished ->
     job = J_CANCELLED;
     if
     :: part0 == P_PENDING -> part0 = P_CANCELLED
     :: part0 == P_RUNNING || part0 == P_LAPSED -> part0 = P_CANCELLED_1
     :: else
     fi;
     if
     :: resource == X_NONE
     :: resource != X_NONE && part1 == Q_PENDING -> part1 = Q_CANCELLED
     :: part1 == Q_PENDING_1 || part1 == Q_RUNNING_1 || part1 == Q_LAPSED_1 || part1 == Q_WAIT_1 -> part1 = Q_CANCELLED_1
     :: part1 == Q_RUNNING_2 || part1 == Q_LAPSED_2 -> part1 = Q_CANCELLED_2
     :: else
     fi
  :: else
  fi;
  reopen(0); reopen(1); reopen(2);
  promote(); look() } }
inline retry() { d_step { failed && archived && !retried ->
  retried = 1; part1 = Q_PENDING;
  if
  :: resource == X_ATTEMPT_FAILED || resource == X_ATTEMPT_FAILED_ALIVE -> resource = X_ATTEMPT
  :: resource == X_TREE_FAILED || resource == X_TREE_FAILED_IN_USE -> resource = X_TREE
  :: else
  fi; look() } }

/* The worker (C-3..C-9, C-17). */
inline claim0() { d_step { worker == 0 && job == J_ACTIVE && part0 == P_PENDING ->
  part0 = P_RUNNING; worker = 1; look() } }
inline claim1() { d_step { worker == 0 && job == J_ACTIVE && resource != X_NONE && (part1 == Q_PENDING || part1 == Q_PENDING_1 || part1 == Q_WAIT_1) ->
  part1 = (part1 == Q_PENDING -> Q_RUNNING_1 : Q_RUNNING_2); worker = 2; look() } }
inline finish0() { d_step { worker == 1 ->
  if :: claimed0 -> part0 = P_SUCCEEDED :: else fi;
  worker = 0; look() } }
inline finish1() { d_step { worker == 2 && !worker_busy ->
  if :: claimed1 -> end_claim() :: else fi;
  worker = 0; look() } }
/* C-6: put back while a maker lives, once the worker has been told so. */
inline put_back() { d_step { worker == 2 && !worker_busy && resource == X_ATTEMPT_ALIVE && unresolved ->
  if
  :: part1 == Q_RUNNING_1 -> part1 = Q_PENDING
  :: part1 == Q_RUNNING_2 -> part1 = Q_PENDING_1
  :: else
  fi;
  worker = 0; look() } }
inline settle() { d_step { worker == 2 && !worker_busy && claimed1 && (resource == X_ATTEMPT || (resource == X_ATTEMPT_ALIVE && !unresolved)) ->
  resource = (unresolved -> X_ATTEMPT_ALIVE : X_ATTEMPT_DONE); look() } }
/* C-5, C-18: the re-proof and the permission. */
inline permit() { d_step { worker == 2 && path_free && claimed1 && (resource == X_TREE || resource == X_TREE_IN_USE) ->
  if
  :: lent -> resource = X_TREE_PRESERVED
  :: else ->
     repo = R_REMOVING; resource = X_TREE_REMOVING;
     removal = M_PERMITTED; remover = T_WORKER;
     granted()
  fi; look() } }
/* The same where somebody stands in it (W-31). */
inline permit_in_use() { d_step { worker == 2 && path_free && claimed1 && (resource == X_TREE || (resource == X_TREE_IN_USE && lent)) ->
  resource = (lent -> X_TREE_PRESERVED : X_TREE_IN_USE); look() } }
inline worker_dies() { d_step { worker != 0 && crashes > 0 ->
  if :: worker_busy -> executor = 0; back = 0 :: else fi;
  worker = 0; crashes--; look() } }

/* Whoever has a warrant: the step on disk, then its record (W-35, C-18). */
inline act() { d_step { executor == 1 ->
  if
  :: back && disk == D_TRASH -> disk = D_HOME
  :: !back && removal == M_SALVAGED && disk == D_HOME -> disk = D_TRASH
  :: !back && removal == M_BRANCH && disk != D_NONE -> disk = D_GONE
  :: else
  fi;
  executor = 2; look() } }
inline record() { d_step { executor == 2 ->
  if
  :: back -> removal = (removal == M_PERMITTED -> M_RETURNED_AT_ONCE : M_RETURNED)
  :: else -> removal = removal + 1
  fi;
  if
  :: back ->
     repo = R_YES; resource = X_TREE_KEPT; executor = 0; back = 0
  :: removal == M_PURGED && attempt == A_COMPENSATING ->
     attempt = A_COMPENSATED; executor = 0
  :: removal == M_PURGED && attempt != A_COMPENSATING ->
     repo = R_NO; resource = X_TREE_REMOVED; executor = 0
  :: else -> granted()
  fi; look() } }

#ifdef NO_RESCUE
#define may_rescue false
#else
#define may_rescue true
#endif
#ifdef NO_BARRIER_RECOVERY
#define may_lift false
#else
#define may_lift true
#endif
#ifdef NO_ATTEMPT_RECOVERY
#define may_recover false
#else
#define may_recover true
#endif
#ifdef NO_TAKE_OVER
#define may_take_over false
#else
#define may_take_over true
#endif

/* Recovery (B-7, W-5, C-4, C-18). */
inline recover_barrier() { d_step { may_lift && barred && barrier_lapsed -> lift_barrier(); look() } }
inline recover_attempt() { d_step { may_recover && unresolved && attempt_lapsed && path_free ->
  if
  :: attempt == A_MATERIALISED && disk == D_HOME && welcome && (repo == R_NONE || repo == R_NO) ->
     attempt = A_OWNED; repo = R_YES
  :: else -> attempt = A_COMPENSATING; holder = H_RECOVERY; attempt_lapsed = 0
  fi; look() } }
inline compensate() { d_step { attempt == A_COMPENSATING && holder == H_RECOVERY && path_free && removal == M_NONE ->
  removal = M_PERMITTED; remover = T_RECOVERY; granted(); look() } }
inline take_over() { d_step { may_take_over && unsettled && path_free && remover != T_WORKER ->
  remover = (remover == T_RECOVERY -> T_RECOVERY_AGAIN : T_RECOVERY); granted(); look() } }
inline rescue0() { d_step { may_rescue && part0 == P_LAPSED -> part0 = P_SUCCEEDED; look() } }
inline rescue1() { d_step { may_rescue && (part1 == Q_LAPSED_1 || part1 == Q_LAPSED_2) -> end_claim(); look() } }
inline recovery_dies() { d_step { executor != 0 && remover >= T_RECOVERY && crashes > 0 ->
  executor = 0; back = 0; crashes--; look() } }

/* Time: a lease lapses when its owner is gone. */
inline barrier_lapses() { d_step { barred && !barrier_lapsed && operator == 5 -> barrier_lapsed = 1; look() } }
inline attempt_lapses() { d_step { unresolved && holder != H_RECOVERY && !attempt_lapsed && maker >= 5 -> attempt_lapsed = 1; look() } }
inline claim0_lapses() { d_step { claimed0 && worker != 1 -> part0 = P_LAPSED; look() } }
inline claim1_lapses() { d_step { claimed1 && worker != 2 -> part1 = part1 + 2; look() } }
inline removal_lapses() { d_step { unsettled && remover == T_WORKER && executor == 0 -> remover = T_LAPSED; look() } }

/* Slowness: it lapses although its owner lives. */
inline barrier_slow() { d_step { barred && !barrier_lapsed && operator != 5 && slow > 0 -> barrier_lapsed = 1; slow--; look() } }
inline attempt_slow() { d_step { unresolved && holder != H_RECOVERY && !attempt_lapsed && maker < 5 && slow > 0 -> attempt_lapsed = 1; slow--; look() } }
inline claim0_slow() { d_step { claimed0 && worker == 1 && slow > 0 -> part0 = P_LAPSED; slow--; look() } }
inline claim1_slow() { d_step { claimed1 && worker == 2 && slow > 0 -> part1 = part1 + 2; slow--; look() } }

#ifndef ACTORS

active proctype system() {
  do
  :: reserve() :: snapshot() :: mutate() :: abort() :: operator_dies()
  :: begin() :: lock() :: make() :: say_made() :: persist() :: give_up() :: maker_dies()
#if NS > 1
  :: create(0) :: begin_close(0) :: abort_close(0) :: commit_close(0)
#endif
#if NS > 2
  :: create(1) :: begin_close(1) :: abort_close(1) :: commit_close(1)
#endif
#if NS > 3
  :: create(2) :: begin_close(2) :: abort_close(2) :: commit_close(2)
#endif
  :: borrow() :: begin_return() :: abort_return() :: commit_return()
  :: unarchive() :: retry()
  :: claim0() :: claim1() :: finish0() :: finish1() :: put_back() :: settle() :: permit()
  :: permit_in_use() :: worker_dies() :: act() :: record()
  :: recover_barrier() :: recover_attempt() :: compensate() :: take_over() :: rescue0() :: rescue1()
  :: recovery_dies()
  :: barrier_lapses() :: attempt_lapses() :: claim0_lapses() :: claim1_lapses() :: removal_lapses()
  :: barrier_slow() :: attempt_slow() :: claim0_slow() :: claim1_slow()
  od
}

#else

active proctype operation() { do :: reserve() :: snapshot() :: mutate() :: abort() od }
active proctype making() {
  do :: begin() :: lock() :: make() :: say_made() :: persist() :: give_up() od
}
/* People may do nothing for ever: their idling is a step, so that fairness forces nothing. */
active proctype people() {
  do
#if NS > 1
  :: create(0) :: begin_close(0) :: abort_close(0) :: commit_close(0)
#endif
#if NS > 2
  :: create(1) :: begin_close(1) :: abort_close(1) :: commit_close(1)
#endif
  :: borrow() :: begin_return() :: abort_return() :: commit_return()
  :: unarchive() :: retry()
  :: slow <= SLOW                        /* always */
  od
}
/* What goes wrong may also not go wrong. */
active proctype faults() {
  do
  :: operator_dies() :: maker_dies() :: worker_dies() :: recovery_dies()
  :: barrier_slow() :: attempt_slow() :: claim0_slow() :: claim1_slow()
  :: slow <= SLOW                        /* always */
  od
}
active proctype working() {
  do
  :: claim0() :: claim1() :: finish0() :: finish1() :: put_back() :: settle() :: permit()
  :: permit_in_use()
  od
}
active proctype executing() { do :: act() :: record() od }
active proctype recovering() {
  do
  :: recover_barrier() :: recover_attempt() :: compensate() :: take_over() :: rescue0() :: rescue1()
  od
}
active proctype time() {
  do
  :: barrier_lapses() :: attempt_lapses() :: claim0_lapses() :: claim1_lapses() :: removal_lapses()
  od
}

ltl P40 { [] (unfinished -> <> !unfinished) }
ltl P41 { [] (barred -> <> !barred) }
ltl P42 { [] (unresolved -> <> !unresolved) }
ltl P46 { [] (unsettled -> <> !unsettled) }

#endif
