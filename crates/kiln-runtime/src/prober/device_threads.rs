//! One persistent host thread for each device.
//!
//! A driver keeps state per thread, and a context switch of the device costs more than the one of the host. So work for
//! a device always runs on the same thread, which starts with the first task and ends when its prober does.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use kiln_driver::DeviceKind;

use crate::error::{Error, Result};

/// Something to run on a worker. It does not panic: a panic would end the worker.
pub(super) type Task = Box<dyn FnOnce() + Send>;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// The workers of a prober.
#[derive(Default)]
pub(super) struct Workers {
    queues: Mutex<BTreeMap<(bool, u32), mpsc::Sender<Task>>>,
}

impl Workers {
    /// Whether the calling thread is a worker. A task that waited for another one could wait for itself.
    pub(super) fn is_worker() -> bool {
        IS_WORKER.get()
    }

    /// Queues a task for a device.
    ///
    /// # Errors
    /// No thread could be started.
    pub(super) fn submit(&self, kind: DeviceKind, ordinal: u32, task: Task) -> Result<()> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (kind == DeviceKind::Simulated, ordinal);
        let queue = match queues.get(&place) {
            Some(queue) => queue.clone(),
            None => {
                let queue = start(kind, ordinal).map_err(Error::other)?;
                queues.insert(place, queue.clone());
                queue
            }
        };
        drop(queues);
        // The worker receives for as long as the map holds its sender, so this does not fail; a task that came back
        // would be dropped, and a thread that waits for its answer is told so by the closed channel.
        let _ = queue.send(task);
        Ok(())
    }
}

fn start(kind: DeviceKind, ordinal: u32) -> std::io::Result<mpsc::Sender<Task>> {
    let (queue, tasks) = mpsc::channel::<Task>();
    thread::Builder::new().name(format!("kiln {kind} {ordinal}")).spawn(move || {
        IS_WORKER.set(true);
        for task in tasks {
            task();
        }
    })?;
    Ok(queue)
}
