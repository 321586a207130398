//! Everything that changes while a machine runs, behind one lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kiln_driver::{CallingLine, Error, Fault as Loss, Site};

use crate::check::access_origin::{Action, Actor, Mark};
use crate::check::acquired_order::AcquiredOrder;
use crate::check::vector_clock::{Lane, Lanes, VectorClock};
use crate::code::launch_readiness::LaunchReadiness;
use crate::collective::collective_launch::CollectiveRun;
use crate::collective::communicators::Communicators;
use crate::device::objects::HostMemory;
use crate::fault_plan::PlannedFault;
use crate::links::Links;
use crate::machine_config::{MachineConfig, Mode, SimChecks};
use crate::memory::address_map::{AddressMap, Graveyard};
use crate::memory::address_space::AddressSpace;
use crate::memory::heap_block_table::PartTable;
use crate::planned_faults::PlannedFaults;
use crate::run_log::Journal;
use crate::schedule::cost_model::Costs;
use crate::schedule::host_functions::HostFunctions;
use crate::schedule::scheduling_choice::{Chooser, Random, Schedule};
use crate::schedule::stream_queue::{Queued, Ready, Step, Stream};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now_ns: u64,
    pub(crate) chooser: Chooser,
    pub(crate) journal: Journal,
    pub(crate) lanes: Lanes,
    /// What waits for memory were found to come after.
    pub(crate) acquired: AcquiredOrder,
    /// What the host knows to be done.
    pub(crate) host: Arc<VectorClock>,
    pub(crate) streams: BTreeMap<Lane, Stream>,
    pub(crate) devices: Vec<DeviceState>,
    pub(crate) addresses: AddressSpace,
    /// The stream that moved last, so that the others get their turn.
    turn: Lane,
    /// Steps that are being run by some thread right now.
    pub(crate) running: usize,
    /// Polls in a row that saw nothing move.
    pub(crate) idle_polls: u32,
    /// Whether the workers are to end.
    pub(crate) stop: bool,
    pub(crate) checks: SimChecks,
    pub(crate) costs: Costs,
    /// How much has passed the links of two devices, the smaller ordinal first, as the plan of faults counts it.
    pub(crate) link_transfers: BTreeMap<(u32, u32), u64>,
    pub(crate) faults: PlannedFaults,
    pub(crate) links: Links,
    pub(crate) communicators: Communicators,
    pub(crate) host_functions: HostFunctions,
    /// When something was last submitted or done while there was a communicator, in real time.
    pub(crate) last_moved: Instant,
    /// When a call of the program last began or ended while there was a communicator, in real time.
    pub(crate) last_called: Instant,
    /// Turned into what kernels pick orders by.
    pub(crate) seed: u64,
    order: u64,
}

/// What changes of one device.
#[derive(Debug)]
pub(crate) struct DeviceState {
    pub(crate) total_bytes: u64,
    /// Memory in use outside of the pool.
    pub(crate) used_bytes: Arc<AtomicU64>,
    pub(crate) pool: Pool,
    pub(crate) map: Arc<AddressMap>,
    /// Other devices whose memory kernels reach.
    pub(crate) reached: Vec<u32>,
    pub(crate) graveyard: Graveyard,
    /// Blocks that resources hand out of larger memory.
    pub(crate) parts: PartTable,
    pub(crate) lost: Option<Error>,
    pub(crate) counts: Counts,
    /// When each engine is free again.
    pub(crate) engines_ns: [u64; ENGINES],
    pub(crate) concurrent_kernels: bool,
    /// Host memory that is registered, as address and length.
    pub(crate) registered: Vec<(usize, usize)>,
    /// What of it kernels reach.
    pub(crate) reached_hosts: Vec<Arc<HostMemory>>,
}

/// What moves bytes or runs kernels; two pieces of work on one engine take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    Upload,
    Download,
    Kernels,
}

const ENGINES: usize = 3;

/// The pool keeps what is freed until it is trimmed.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    pub(crate) used_bytes: u64,
    pub(crate) held_bytes: u64,
}

/// How often things happened, for the fault plan.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) allocations: u64,
    pub(crate) launches: u64,
    pub(crate) loads: u64,
}

impl DeviceState {
    fn new(total_bytes: u64, concurrent_kernels: bool) -> Self {
        Self {
            total_bytes,
            used_bytes: Arc::default(),
            pool: Pool::default(),
            map: Arc::default(),
            reached: Vec::new(),
            graveyard: Graveyard::default(),
            parts: PartTable::default(),
            lost: None,
            counts: Counts::default(),
            engines_ns: [0; ENGINES],
            concurrent_kernels,
            registered: Vec::new(),
            reached_hosts: Vec::new(),
        }
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        let used = self.used_bytes.load(Ordering::Relaxed).saturating_add(self.pool.held_bytes);
        self.total_bytes.saturating_sub(used)
    }
}

impl State {
    pub(crate) fn new(config: &MachineConfig) -> Self {
        let chooser = match &config.mode {
            Mode::Seeded(seed) => Chooser::Seeded(Random::new(*seed)),
            Mode::Scheduled(Schedule(script)) => {
                Chooser::Scripted { script: script.clone(), taken: Vec::new() }
            }
            Mode::Threaded { .. } => Chooser::First,
        };
        let seed = match &config.mode {
            Mode::Seeded(seed) => *seed,
            Mode::Scheduled(_) | Mode::Threaded { .. } => 0,
        };
        let mut host = VectorClock::default();
        host.set(Lane::HOST, 1);
        let device = |device: &crate::DeviceConfig| {
            DeviceState::new(device.memory_bytes, device.features.concurrent_kernels)
        };
        Self {
            now_ns: 0,
            chooser,
            journal: Journal::new(config.mode.clone(), config.limits.clone()),
            lanes: Lanes::new(),
            acquired: AcquiredOrder::default(),
            host: Arc::new(host),
            streams: BTreeMap::new(),
            devices: config.devices.iter().map(device).collect(),
            addresses: AddressSpace::new(),
            turn: Lane::HOST,
            running: 0,
            idle_polls: 0,
            stop: false,
            checks: config.checks,
            costs: config.costs.clone(),
            faults: PlannedFaults::new(config.faults.clone(), config.fault_log.clone()),
            link_transfers: BTreeMap::new(),
            links: config.links.clone(),
            communicators: Communicators::default(),
            host_functions: HostFunctions::default(),
            last_moved: Instant::now(),
            last_called: Instant::now(),
            seed,
            order: 0,
        }
    }

    /// Lets host time pass.
    pub(crate) fn pass(&mut self, nanoseconds: u64) {
        self.now_ns = self.now_ns.saturating_add(nanoseconds);
    }

    pub(crate) fn device(&mut self, ordinal: u32) -> &mut DeviceState {
        &mut self.devices[ordinal as usize]
    }

    /// The place of the newest step among all of them.
    pub(crate) fn order(&self) -> u64 {
        self.order
    }

    /// A step of the host, here and now.
    pub(crate) fn host_mark(&mut self, device: u32, action: Action) -> Arc<Mark> {
        self.order += 1;
        Arc::new(Mark {
            lane: Lane::HOST,
            tick: self.host.of(Lane::HOST),
            end: None,
            clock: self.host.clone(),
            order: self.order,
            actor: Actor::host(device, action),
        })
    }

    /// The next step on a stream's own lane. It comes after everything queued there and all the host knows; what the
    /// host does from now on does not come before it.
    pub(crate) fn stream_mark(
        &mut self,
        lane: Lane,
        action: Action,
        is_submission: bool,
    ) -> Option<Arc<Mark>> {
        let stream = self.streams.get_mut(&lane)?;
        stream.clock.join(&self.host);
        stream.submitted += u64::from(is_submission);
        let actor = Actor {
            device: stream.device,
            stream: Some(stream.id),
            submission: Some(kiln_driver::Submission(stream.submitted)),
            node: None,
            action,
            called_at: CallingLine::current().filter(|_| is_submission),
        };
        let tick = self.lanes.next_tick(lane);
        stream.clock.set(lane, tick);
        stream.last_tick = tick;
        self.order += 1;
        let clock = Arc::new(stream.clock.clone());
        self.host_moves();
        Some(Arc::new(Mark { lane, tick, end: None, clock, order: self.order, actor }))
    }

    /// A node of a graph, on its branch.
    pub(crate) fn node_mark(
        &mut self,
        lane: Lane,
        end: (Lane, u64),
        mut clock: VectorClock,
        actor: Actor,
    ) -> Arc<Mark> {
        let tick = self.lanes.next_tick(lane);
        clock.set(lane, tick);
        self.order += 1;
        Arc::new(Mark { lane, tick, end: Some(end), clock: Arc::new(clock), order: self.order, actor })
    }

    /// From here on the host does something new.
    fn host_moves(&mut self) {
        let host = Arc::make_mut(&mut self.host);
        host.set(Lane::HOST, host.of(Lane::HOST) + 1);
    }

    pub(crate) fn host_learns(&mut self, clock: &VectorClock) {
        if !self.host.covers(clock) {
            let host = Arc::make_mut(&mut self.host);
            host.join(clock);
            self.acquired.complete(host);
        }
    }

    pub(crate) fn queue(&mut self, lane: Lane, mark: Arc<Mark>, step: Step) {
        self.queue_collective(lane, mark, step, None);
    }

    /// Queues a step that may be a launch of collectives.
    pub(crate) fn queue_collective(
        &mut self,
        lane: Lane,
        mark: Arc<Mark>,
        step: Step,
        collective: Option<CollectiveRun>,
    ) {
        let queued_ns = self.now_ns;
        if let Some(stream) = self.streams.get_mut(&lane) {
            stream.queue.push_back(Queued { mark, queued_ns, step, collective });
        }
    }

    /// Everything that can run now, in an order that is always the same.
    pub(crate) fn ready(&self) -> Vec<Ready> {
        let mut list = self.candidates();
        list.retain(|ready| self.readiness_of(*ready) == LaunchReadiness::Ready);
        if !self.communicators.is_empty() {
            list.retain(|ready| !self.waits_for_ranks(*ready));
        }
        list
    }

    /// Everything that can run as far as its stream is concerned. Collectives among it may wait for other ranks.
    pub(crate) fn candidates(&self) -> Vec<Ready> {
        let mut list = Vec::new();
        for (lane, stream) in &self.streams {
            stream.ready(*lane, &mut list);
        }
        list
    }

    /// Something that can run now, of the stream whose turn it is.
    pub(crate) fn next_in_turn(&mut self) -> Option<Ready> {
        let ready = self.ready();
        let next = ready.iter().find(|ready| ready.lane > self.turn).or(ready.first()).copied()?;
        self.turn = next.lane;
        Some(next)
    }

    /// Streams that must move before a stream can reach a tick.
    pub(crate) fn needed_by(&self, lane: Lane) -> Vec<Lane> {
        let mut needed = vec![lane];
        let mut at = 0;
        while let Some(lane) = needed.get(at).copied() {
            at += 1;
            let head = self.streams.get(&lane).and_then(|stream| stream.queue.front());
            if let Some(Queued { step: Step::Wait(Some(signal)), .. }) = head
                && signal.done_ns.get().is_none()
                && !needed.contains(&signal.mark.lane)
            {
                needed.push(signal.mark.lane);
            }
        }
        needed
    }

    /// The device answers nothing else from now on, and nothing queued on it runs any more.
    pub(crate) fn lose(&mut self, device: u32, loss: Loss, actor: Option<&Actor>) {
        if self.device(device).lost.is_some() {
            return;
        }
        let now_ns = self.now_ns;
        self.journal.write(now_ns, format_args!("device {device} is lost: {loss}"));
        self.communicators.lose(device, &loss.to_string());
        let code = loss.code;
        let mut error = Error::lost("submit", loss);
        if let Some(site) = actor.and_then(site) {
            self.journal.mark_fatal(device, &site);
            error = error.at(site);
        }
        self.device(device).lost = Some(error);
        for stream in self.streams.values_mut().filter(|stream| stream.device == device) {
            self.host_functions.lose(stream, code);
            for queued in stream.queue.drain(..) {
                // A stream of another device that waits for it goes on.
                if let Step::Signal(signal) = queued.step {
                    let _ = signal.done_ns.set(now_ns);
                }
            }
            stream.finished.clear();
        }
    }

    /// The planned loss that is due at this time, if any.
    pub(crate) fn meet_planned_loss(&mut self, device: u32) {
        let now_ns = u128::from(self.now_ns);
        let due = self.faults.meet(device, |fault| match fault {
            PlannedFault::LostAt { time, code } if time.as_nanos() <= now_ns => Some(*code),
            _ => None,
        });
        if let Some(code) = due {
            self.lose(device, Loss { code, detail: "as planned for this time".into() }, None);
        }
    }
}

/// Where a late failure belongs.
pub(crate) fn site(actor: &Actor) -> Option<Site> {
    let (stream, submission) = (actor.stream?, actor.submission?);
    Some(Site { stream, submission, command: actor.action.to_string() })
}
