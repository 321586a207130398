//! The thread that notices lost ranks, one for all communicators of a process. It runs while there are any.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::membership::Membership;

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(10);
/// Looks from one question to the devices to the next.
const LOOKS_PER_QUESTION: u32 = 10;

struct Watch {
    memberships: Vec<Weak<Membership>>,
    is_running: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { memberships: Vec::new(), is_running: false });

/// Watches a communicator from here on, as long as it lives.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn watch(membership: &Arc<Membership>) -> std::io::Result<()> {
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    watch.memberships.push(Arc::downgrade(membership));
    if !watch.is_running {
        std::thread::Builder::new().name("kiln-rank-watch".into()).spawn(run)?;
        watch.is_running = true;
    }
    Ok(())
}

fn run() {
    for look in 1_u32.. {
        std::thread::sleep(PERIOD);
        let memberships: Vec<Weak<Membership>> = {
            let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
            watch.memberships.retain(|membership| membership.strong_count() > 0);
            if watch.memberships.is_empty() {
                watch.is_running = false;
                return;
            }
            watch.memberships.clone()
        };
        let asks = look.is_multiple_of(LOOKS_PER_QUESTION);
        // One after the other, so that a look that takes long keeps no other communicator, and its devices, alive.
        memberships.iter().filter_map(Weak::upgrade).for_each(|membership| membership.look(asks));
    }
}
