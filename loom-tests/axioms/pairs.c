/* The Dekker pairs for GenMC, which checks them under its own RC11:
 *
 *   for pair in 1 2 3 4 5 6 7; do genmc --rc11 -- -DPAIR=$pair pairs.c; done
 *
 * With -DNO_FIRST or -DNO_SECOND a fence is taken out, and GenMC must report an error. In 6 there are no fences: a
 * SeqCst access becomes weaker instead. protocols.py has the same pairs in full, with the orderings that the source has.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define RLX memory_order_relaxed
#define load(word) atomic_load_explicit(&word, RLX)
#define store(word, value) atomic_store_explicit(&word, value, RLX)
#define FENCE atomic_thread_fence(memory_order_seq_cst)
#ifdef NO_FIRST
#define FIRST_FENCE
#define FIRST_LOAD memory_order_acquire
#else
#define FIRST_FENCE FENCE
#define FIRST_LOAD memory_order_seq_cst
#endif
#ifdef NO_SECOND
#define SECOND_FENCE
#define SECOND_SWAP memory_order_acq_rel
#else
#define SECOND_FENCE FENCE
#define SECOND_SWAP memory_order_seq_cst
#endif

atomic_int mine, theirs, head;
int one_sees, other_sees;
int local; /* not atomic: GenMC reports a race */

static void write_mine(void) {
#if PAIR == 3 /* the node's word, before `closed` */
  atomic_store_explicit(&mine, 1, memory_order_release);
#elif PAIR == 4 /* `reported`, before `sweep_at` */
  atomic_fetch_add_explicit(&mine, 1, memory_order_release);
#elif PAIR == 5 /* `requested`, before `leader`, `busy_since` or `looks_at` */
  atomic_exchange_explicit(&mine, 1, memory_order_release);
#else /* the bit of a list, before `sealed` (1) or `wake_below` (2) */
  atomic_fetch_or_explicit(&mine, 1, RLX);
#endif
}

#if PAIR == 6 /* `is_executor` and the slot, before `stopping` */

void *producer(void *unused) {
  atomic_store_explicit(&mine, 1, memory_order_seq_cst);
  atomic_exchange_explicit(&head, 1, memory_order_seq_cst);
  one_sees = atomic_load_explicit(&theirs, FIRST_LOAD);
  return NULL;
}

void *advancer(void *unused) {
  atomic_exchange_explicit(&theirs, 1, SECOND_SWAP);
  if (atomic_load_explicit(&mine, memory_order_seq_cst))
    other_sees = atomic_exchange_explicit(&head, 0, memory_order_seq_cst);
  return NULL;
}

#elif PAIR == 7 /* `busy`, before `revoked`; a fence stands for what `membarrier` makes of each side */

void *producer(void *unused) {
  store(mine, 1);
  FIRST_FENCE;
  one_sees = atomic_load_explicit(&theirs, memory_order_acquire);
  if (!one_sees)
    local = 1;
  atomic_store_explicit(&mine, 0, memory_order_release);
  return NULL;
}

void *advancer(void *unused) {
  store(theirs, 1);
  SECOND_FENCE;
  if (!atomic_load_explicit(&mine, memory_order_acquire))
    local = 2;
  atomic_store_explicit(&theirs, 0, memory_order_release);
  return NULL;
}

#else

void *producer(void *unused) {
  write_mine();
  FIRST_FENCE;
  one_sees = load(theirs);
#if PAIR == 1
  int empty = 0;
  if (!one_sees)
    one_sees = !atomic_compare_exchange_strong_explicit(&head, &empty, 1, memory_order_release, RLX);
#endif
  return NULL;
}

void *advancer(void *unused) {
  store(theirs, 1);
  SECOND_FENCE;
  other_sees = load(mine);
#if PAIR == 1
  if (other_sees) {
    atomic_fetch_and_explicit(&mine, 0, RLX);
    other_sees = atomic_exchange_explicit(&head, 9, memory_order_acquire) == 1;
  }
#endif
  return NULL;
}

#endif

int main(void) {
  pthread_t one, other;
  pthread_create(&one, NULL, producer, NULL);
  pthread_create(&other, NULL, advancer, NULL);
  pthread_join(one, NULL);
  pthread_join(other, NULL);
#if PAIR != 7 /* where the two may both find the other gone */
  assert(one_sees || other_sees);
#endif
  return 0;
}
