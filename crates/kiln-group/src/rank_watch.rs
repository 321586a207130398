//! The thread that notices lost ranks, one for all communicators of a process. It runs while there are any.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use crate::membership::Membership;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(10);
/// Looks from one question to the devices to the next.
const LOOKS_PER_QUESTION: u32 = 10;
/// How long a rank that ends waits for the look at it. Only one that aborts ranks takes longer.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

struct Watch {
    memberships: Vec<Weak<Membership>>,
    /// What is looked at right now, and by which thread.
    looked_at: Option<(Weak<Membership>, ThreadId)>,
    is_running: bool,
}

static WATCH: Mutex<Watch> =
    Mutex::new(Watch { memberships: Vec::new(), looked_at: None, is_running: false });
/// A look has ended.
static LOOKED: Condvar = Condvar::new();

/// Watches a communicator from here on, until its last rank in this process ends.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn watch(membership: &Arc<Membership>) -> std::io::Result<()> {
    let mut watch = lock();
    if !watch.has(Arc::as_ptr(membership)) {
        watch.memberships.push(Arc::downgrade(membership));
    }
    if !watch.is_running {
        std::thread::Builder::new().name("kiln-rank-watch".into()).spawn(run)?;
        watch.is_running = true;
    }
    Ok(())
}

/// A rank of this process has left a communicator, which is not watched any more if it was the last. Returns once the thread has released what the rank had,
/// so that its device ends with the program's own handles.
pub(crate) fn rank_left(membership: &Membership) {
    let mut watch = lock();
    if !membership.has_ranks_here() {
        watch.memberships.retain(|watched| !std::ptr::eq(watched.as_ptr(), membership));
    }
    let own = std::thread::current().id();
    let is_looked_at = |watch: &mut Watch| {
        let looked_at = watch.looked_at.as_ref();
        looked_at.is_some_and(|(at, by)| std::ptr::eq(at.as_ptr(), membership) && *by != own)
    };
    drop(LOOKED.wait_timeout_while(watch, LOOK_LIMIT, is_looked_at));
}

fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    fn has(&self, membership: *const Membership) -> bool {
        self.memberships.iter().any(|watched| std::ptr::eq(watched.as_ptr(), membership))
    }

    /// Begins a look, if that is still watched.
    fn begin_look(&mut self, membership: &Weak<Membership>) -> Option<Arc<Membership>> {
        let found = self.has(membership.as_ptr()).then(|| membership.upgrade())??;
        self.looked_at = Some((membership.clone(), std::thread::current().id()));
        Some(found)
    }
}

fn run() {
    for look in 1_u32.. {
        std::thread::sleep(PERIOD);
        let memberships: Vec<Weak<Membership>> = {
            let mut watch = lock();
            watch.memberships.retain(|membership| membership.strong_count() > 0);
            if watch.memberships.is_empty() {
                watch.is_running = false;
                return;
            }
            watch.memberships.clone()
        };
        let asks = look.is_multiple_of(LOOKS_PER_QUESTION);
        // One after the other, so that a look that takes long keeps no other communicator, and its devices, alive.
        for membership in &memberships {
            let begun = lock().begin_look(membership);
            let Some(found) = begun else { continue };
            found.look(asks);
            drop(found);
            lock().looked_at = None;
            LOOKED.notify_all();
        }
    }
}
