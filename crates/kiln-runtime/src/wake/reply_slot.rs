//! A one-shot channel: one reply, for a task or a thread that waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A place for one answer.
pub struct ReplySlot<T> {
    state: Mutex<State<T>>,
    given: Condvar,
}

struct State<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

impl<T> Default for ReplySlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ReplySlot<T> {
    /// A place without an answer.
    pub fn new() -> Self {
        Self { state: Mutex::new(State { answer: None, waker: None }), given: Condvar::new() }
    }

    /// Gives the answer and says whom to wake; an answer that is there already stays, and no task is woken again.
    #[must_use = "the task waits to be woken"]
    pub fn give(&self, answer: T) -> Option<Waker> {
        let mut state = self.state();
        if state.answer.is_some() {
            return None;
        }
        state.answer = Some(answer);
        let waker = state.waker.take();
        drop(state);
        self.given.notify_all();
        waker
    }

    /// The answer, or the task will be woken with it. The task that asked last is the one.
    pub fn poll(&self, context: &Context<'_>) -> Poll<T> {
        let mut state = self.state();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        match &mut state.waker {
            Some(known) => known.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Waits for the answer, but no longer than this.
    pub fn wait(&self, limit: Option<Duration>) -> Option<T> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.state();
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if let Some(answer) = state.answer.take() {
                return Some(answer);
            }
            state = match left {
                None => self.given.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return None,
                Some(left) => self.given.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
