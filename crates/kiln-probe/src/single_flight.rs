//! One attempt for all callers at the same time.
//!
//! Making a context takes a third of a second and may fail. Threads that ask while an attempt is under way wait for it
//! and share its answer, good or bad; a thread that asks later starts another. The lock guards a few words and is
//! never held while the attempt runs, so no driver call happens under it. An attempt that panics answers no caller:
//! one of those who waited makes the next one.

use std::process;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::{ProbeError, Result};

/// Attempts, one at a time.
pub struct SharedAttempt<T> {
    state: Mutex<State<T>>,
    finished: Condvar,
}

struct State<T> {
    owner: Option<Owner>,
    /// How many attempts have ended.
    ended: u64,
    /// The answer of the last one; none if it panicked.
    last: Option<T>,
}

/// Who makes the attempt. After a fork the thread is gone and would be waited for without end, hence the process.
struct Owner {
    process: u32,
    thread: ThreadId,
}

impl<T: Clone> Default for SharedAttempt<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> SharedAttempt<T> {
    /// No attempt yet.
    pub const fn new() -> Self {
        let state = State { owner: None, ended: 0, last: None };
        Self { state: Mutex::new(state), finished: Condvar::new() }
    }

    /// Makes an attempt, or waits for the one under way and shares its answer.
    ///
    /// # Errors
    /// If the attempt is this very thread's, or was another process's.
    pub fn join(&self, attempt: impl FnOnce() -> T) -> Result<T> {
        let mut state = self.lock();
        while let Some(owner) = &state.owner {
            if owner.process != process::id() {
                return Err(ProbeError::Forked);
            }
            if owner.thread == thread::current().id() {
                return Err(ProbeError::Recursion);
            }
            let seen = state.ended;
            while state.ended == seen {
                state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(answer) = &state.last {
                return Ok(answer.clone());
            }
        }
        state.owner = Some(Owner { process: process::id(), thread: thread::current().id() });
        drop(state);
        let mut guard = AttemptGuard { attempt: self, answer: None };
        let answer = attempt();
        guard.answer = Some(answer.clone());
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends an attempt, also when it unwinds.
struct AttemptGuard<'a, T: Clone> {
    attempt: &'a SharedAttempt<T>,
    answer: Option<T>,
}

impl<T: Clone> Drop for AttemptGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.attempt.lock();
        state.owner = None;
        state.ended += 1;
        state.last = self.answer.take();
        drop(state);
        self.attempt.finished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn attempts_never_overlap_and_no_caller_gets_an_answer_from_before_it_asked() {
        let rounds = if cfg!(miri) { 10 } else { 200 };
        let attempt = SharedAttempt::<usize>::new();
        let (ended, flying) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let before = ended.load(Ordering::SeqCst);
                        let answer = attempt.join(|| {
                            assert_eq!(flying.fetch_add(1, Ordering::SeqCst), 0);
                            thread::yield_now();
                            flying.fetch_sub(1, Ordering::SeqCst);
                            ended.fetch_add(1, Ordering::SeqCst) + 1
                        });
                        // An attempt that was counted and has not finished yet is the one that is shared.
                        assert!(answer.unwrap() >= before);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_leaves_the_next_attempt_free() {
        let attempt = SharedAttempt::<u32>::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| attempt.join(|| panic!("planned"))));
        assert!(panicked.is_err());
        assert_eq!(attempt.join(|| 3).unwrap(), 3);
    }

    #[test]
    fn an_attempt_inside_of_itself_is_an_error_and_no_deadlock() {
        let attempt = SharedAttempt::<bool>::new();
        let inner = attempt.join(|| attempt.join(|| true).is_err()).unwrap();
        assert!(inner);
    }
}
