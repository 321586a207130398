//! The thread that looks at communicators from outside, one for the process. It runs while there are any.
//!
//! Submissions ask NCCL for nothing but their work. What NCCL finds wrong in the background, such as a rank whose process ended, is read here; and a call that waits inside of NCCL
//! for longer than the deadline is ended here, by an abort.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::{IN_PROGRESS, NcclRank, check, failure};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(50);

struct Watch {
    ranks: Vec<Watched>,
    is_running: bool,
}

struct Watched {
    rank: Weak<NcclRank>,
    /// The call that was inside of NCCL at the last look, and since when it was seen there.
    inside: Option<(u64, Instant)>,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { ranks: Vec::new(), is_running: false });

/// Watches a rank from here on, as long as it lives.
///
/// # Errors
/// If no thread can be started.
pub(super) fn watch(rank: &Arc<NcclRank>) -> std::io::Result<()> {
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    watch.ranks.push(Watched { rank: Arc::downgrade(rank), inside: None });
    if !watch.is_running {
        std::thread::Builder::new().name("kiln-nccl-watch".into()).spawn(run)?;
        watch.is_running = true;
    }
    Ok(())
}

fn run() {
    loop {
        std::thread::sleep(PERIOD);
        // Ranks are dropped without the lock: the last owner of one ends it.
        let alive: Vec<Arc<NcclRank>> = {
            let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
            watch.ranks.retain(|watched| watched.rank.strong_count() > 0);
            if watch.ranks.is_empty() {
                watch.is_running = false;
                return;
            }
            watch.ranks.iter_mut().filter_map(Watched::look).collect()
        };
        for rank in alive {
            rank.look();
        }
    }
}

impl Watched {
    /// The rank, after a look at the call that is inside of NCCL: one that is late is said to be that.
    fn look(&mut self) -> Option<Arc<NcclRank>> {
        let rank = self.rank.upgrade()?;
        self.inside = match (rank.making.call(), self.inside) {
            (Some(call), Some((seen, since))) if call == seen => Some((seen, since)),
            (Some(call), _) => Some((call, Instant::now())),
            (None, _) => None,
        };
        if self.inside.is_some_and(|(_, since)| since.elapsed() >= rank.rank.deadline) {
            rank.fail(rank.late("ncclGroupEnd"));
            rank.is_late.store(true, Ordering::Release);
        }
        Some(rank)
    }
}

impl NcclRank {
    /// Reads what NCCL found wrong in the background, and ends a call that is late.
    fn look(self: Arc<Self>) {
        if self.failed.get().is_some() {
            if self.is_late.load(Ordering::Acquire) && !self.is_to_end() {
                self.abort_late();
            }
            return;
        }
        let Ok(raw) = self.making.outcome() else { return };
        let mut state: c_int = 0;
        // Held, so that the communicator is not aborted meanwhile. An abort that is under way is not waited for.
        let Ok(abort) = self.abort.try_lock() else { return };
        if abort.has_begun() || raw.is_null() {
            return;
        }
        // SAFETY: the communicator is alive while it is not aborted, and the out-parameter is a live local. NCCL takes this call from any thread.
        let asked =
            check(self.api, "ncclCommGetAsyncError", unsafe { (self.api.async_error)(raw, &mut state) });
        drop(abort);
        match asked {
            Err(failed) => self.fail(failed),
            Ok(()) if state != 0 && state != IN_PROGRESS => {
                self.fail(failure(self.api, "ncclCommGetAsyncError", state));
            }
            Ok(()) => {}
        }
    }

    /// Ends a call that is late, on another thread: an abort may take seconds, and other ranks are to be looked at.
    fn abort_late(self: Arc<Self>) {
        let abort = move || {
            // The thread whose call is ended is told why; that the abort failed is told by the next one.
            let _ = self.abort();
        };
        // Without a thread it is tried again at the next look.
        let _ = std::thread::Builder::new().name("kiln-nccl-late".into()).spawn(abort);
    }
}
