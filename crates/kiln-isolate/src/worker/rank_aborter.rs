//! Ends ranks of communicators beside the main loop, which may be inside of a call that waits for the other ranks.
//!
//! An abort is a launch in the ring, which the main loop carries out in its turn. The client says it in a separate ring as well, which a thread here reads: so the abort also comes while the main loop
//! waits inside of a library, and the call there returns. A rank ends once, so that the second abort only has the answer of the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use kiln_driver::{
    Command, Dim3, Driver, LaunchCommand, ModuleId, Result, StreamRequest, Timeout, Vouched, WaitTarget,
};

use super::SharedDriver;
use crate::protocol::ring::RingReader;
use crate::protocol::segment::{ABORTS, Condition, Segment};
use crate::protocol::wire::ABORT;

/// How long the launch of an abort may take, which has taken effect before.
const ABORT_LIMIT: Timeout = Timeout::After(Duration::from_secs(5));

/// The ranks that are loaded, and the thread that ends them. It begins with the first rank.
pub(super) struct RankAborter {
    segment: Segment,
    driver: Weak<dyn Driver>,
    ranks: Arc<Ranks>,
    is_running: bool,
}

/// A rank: its module as long as it is loaded. Held while it is ended.
type Rank = Arc<Mutex<Option<ModuleId>>>;

/// The ranks by the ids of the client.
#[derive(Default)]
struct Ranks(Mutex<HashMap<u64, Rank>>);

impl Ranks {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Rank>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RankAborter {
    pub(super) fn new(segment: Segment, driver: &SharedDriver) -> Self {
        Self { segment, driver: Arc::downgrade(driver), ranks: Arc::default(), is_running: false }
    }

    /// A rank was loaded. Without a thread it is ended by the main loop alone.
    pub(super) fn loaded(&mut self, id: u64, module: ModuleId) {
        self.ranks.lock().insert(id, Arc::new(Mutex::new(Some(module))));
        if !self.is_running {
            let (segment, driver, ranks) = (self.segment.clone(), self.driver.clone(), self.ranks.clone());
            let thread = std::thread::Builder::new().name("kiln aborter".into());
            self.is_running = thread.spawn(move || run(&segment, &driver, &ranks)).is_ok();
        }
    }

    /// A module is given back. Returns once no abort of it is under way.
    pub(super) fn unloaded(&self, id: u64) {
        let rank = self.ranks.lock().remove(&id);
        if let Some(rank) = rank {
            *rank.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

/// Reads aborts until the device is closed, or the ring is damaged.
fn run(segment: &Segment, driver: &Weak<dyn Driver>, ranks: &Ranks) {
    let mut ring = RingReader::new(segment.bytes(), ABORTS);
    let mut message = Vec::new();
    loop {
        segment.event_count(Condition::Aborts).wait_until(Duration::ZERO, None, || ring.is_ready());
        match ring.pop(&mut message) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => return,
        }
        let Some(driver) = driver.upgrade() else { return };
        let id = message.first_chunk().copied().map(u64::from_le_bytes);
        let Some(rank) = id.and_then(|id| ranks.lock().get(&id).cloned()) else { continue };
        // Each in a thread: the abort of one rank may not return before another one is aborted. A refusal is told by the abort in the other ring.
        let (beside, same) = (driver.clone(), rank.clone());
        let abort_beside = move || abort(&*beside, &same);
        if std::thread::Builder::new().name("kiln abort".into()).spawn(abort_beside).is_err() {
            abort(&*driver, &rank);
        }
    }
}

/// Ends a rank, unless its module is gone.
fn abort(driver: &dyn Driver, rank: &Rank) {
    let module = rank.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = *module {
        let _ = launch_abort(driver, module);
    }
}

fn launch_abort(driver: &dyn Driver, module: ModuleId) -> Result<()> {
    let function = driver.function(module, ABORT)?;
    let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
    let launch = LaunchCommand {
        function: function.id,
        grid: Dim3::from(1_u32),
        block: Dim3::from(1_u32),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: &[],
        declared: None,
        // SAFETY: the function takes no arguments and touches no memory.
        vouched: unsafe { Vouched::new() },
    };
    let submitted = driver.submit(stream, &Command::Launch(launch));
    // The module may be unloaded after that.
    let waited = driver.wait(WaitTarget::Stream(stream), ABORT_LIMIT);
    let _ = driver.destroy(stream.into());
    submitted.and(waited).map(drop)
}
