//! Executors of a few lines: one thread that parks, and one that runs many tasks.

#[path = "../../../../../examples/block_on.rs"]
mod block_on;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) use block_on::block_on;

/// A waker that counts how often it was woken.
#[derive(Default)]
pub(crate) struct Counted(AtomicUsize, Mutex<bool>, Condvar);

impl Counted {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until it was woken.
    pub(crate) fn wait(&self) {
        let mut woken = self.1.lock().unwrap();
        while !*woken {
            woken = self.2.wait(woken).unwrap();
        }
    }
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        *self.1.lock().unwrap() = true;
        self.2.notify_all();
    }
}

/// Polls once with that waker.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Arc<Counted>) -> Poll<F::Output> {
    let waker = Waker::from(waker.clone());
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Many tasks on a few threads.
#[derive(Default)]
pub(crate) struct Tasks {
    ready: Mutex<VecDeque<Arc<Task>>>,
    changed: Condvar,
    unfinished: AtomicUsize,
}

struct Task {
    job: Mutex<Option<Job>>,
    owner: Arc<Tasks>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let owner = self.owner.clone();
        owner.ready.lock().unwrap().push_back(self);
        owner.changed.notify_one();
    }
}

impl Tasks {
    pub(crate) fn spawn(self: &Arc<Self>, job: impl Future<Output = ()> + Send + 'static) {
        self.unfinished.fetch_add(1, Ordering::SeqCst);
        Arc::new(Task { job: Mutex::new(Some(Box::pin(job))), owner: self.clone() }).wake();
    }

    /// Runs everything on so many threads until all of it is done.
    pub(crate) fn run(self: &Arc<Self>, threads: usize) {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| self.work());
            }
        });
    }

    fn work(&self) {
        loop {
            let mut ready = self.ready.lock().unwrap();
            let task = loop {
                if self.unfinished.load(Ordering::SeqCst) == 0 {
                    self.changed.notify_all();
                    return;
                }
                match ready.pop_front() {
                    Some(task) => break task,
                    None => ready = self.changed.wait(ready).unwrap(),
                }
            };
            drop(ready);
            let mut slot = task.job.lock().unwrap();
            let Some(job) = slot.as_mut() else { continue };
            let waker = Waker::from(task.clone());
            if job.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                *slot = None;
                if self.unfinished.fetch_sub(1, Ordering::SeqCst) == 1 {
                    drop(self.ready.lock().unwrap());
                    self.changed.notify_all();
                }
            }
        }
    }
}
