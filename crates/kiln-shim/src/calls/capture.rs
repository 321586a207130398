//! Stream capture: work that is recorded instead of queued.
//!
//! A stream that captures adds a node for each command, after the nodes that it has reached. An event that is recorded there remembers those
//! nodes, and a stream that waits for the event joins the capture after them.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use kiln_driver::{Code, Command, EventId, StreamId};

use crate::boundary::Answer;
use crate::calls::graph_work::NodeWork;
use crate::calls::graphs::Graph;
use crate::handle_table::RawHandle;

pub(crate) const CAPTURE_UNSUPPORTED: Code = Code(900);
const CAPTURE_INVALIDATED: Code = Code(901);
const CAPTURE_MERGE: Code = Code(902);
const CAPTURE_UNMATCHED: Code = Code(903);
const CAPTURE_UNJOINED: Code = Code(904);
const CAPTURE_ISOLATION: Code = Code(905);
/// The legacy stream would have to wait for a stream that captures.
pub(crate) const CAPTURE_IMPLICIT: Code = Code(906);
const CAPTURED_EVENT: Code = Code(907);

/// A capture, shared by the streams that take part.
type SharedCapture = Arc<Mutex<Capture>>;

struct Capture {
    id: u64,
    origin: StreamId,
    /// The graph that gets the nodes, with its handle.
    graph: CaptureGraph,
    /// The nodes that the next one of a stream comes after.
    reached: HashMap<StreamId, Vec<u32>>,
    is_invalid: bool,
    /// Which calls that may wait for the device end its use: those of every thread, of the thread that began it, or none.
    mode: CaptureMode,
    thread: ThreadId,
}

/// Which threads keep away from calls that may wait for the device while a capture runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaptureMode {
    Global,
    OfThread,
    Relaxed,
}

impl CaptureMode {
    /// The mode with a number of the API.
    pub(crate) fn of(number: u32) -> Answer<Self> {
        match number {
            0 => Ok(Self::Global),
            1 => Ok(Self::OfThread),
            2 => Ok(Self::Relaxed),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

thread_local! {
    /// What the thread asked for with `cuThreadExchangeStreamCaptureMode`.
    static OF_THREAD: Cell<CaptureMode> = const { Cell::new(CaptureMode::Global) };
}

/// Sets the mode of the thread, and says what it was.
pub(crate) fn exchange_mode(mode: CaptureMode) -> CaptureMode {
    OF_THREAD.replace(mode)
}

/// The graph of a capture.
#[derive(Clone)]
pub(crate) struct CaptureGraph {
    pub(crate) handle: RawHandle,
    pub(crate) graph: Arc<Graph>,
    /// Whether the capture made it, and takes it away if it fails.
    pub(crate) is_own: bool,
}

/// A capture as its stream sees it.
pub(crate) struct CaptureState {
    pub(crate) id: u64,
    pub(crate) is_valid: bool,
    pub(crate) graph: CaptureGraph,
    /// The nodes that the next one comes after.
    pub(crate) reached: Vec<u32>,
}

/// The captures of a context.
#[derive(Default)]
pub(crate) struct Captures {
    streams: HashMap<StreamId, SharedCapture>,
    events: HashMap<EventId, (SharedCapture, Vec<u32>)>,
    begun: u64,
}

impl Captures {
    /// Begins a capture into a graph, behind some of its nodes.
    pub(crate) fn begin(
        &mut self,
        stream: StreamId,
        mode: CaptureMode,
        graph: CaptureGraph,
        after: Vec<u32>,
    ) -> Answer {
        if self.streams.contains_key(&stream) {
            return Err(Code::ILLEGAL_STATE);
        }
        self.begun += 1;
        let reached = HashMap::from([(stream, after)]);
        let thread = std::thread::current().id();
        let capture =
            Capture { id: self.begun, origin: stream, graph, reached, is_invalid: false, mode, thread };
        self.streams.insert(stream, Arc::new(Mutex::new(capture)));
        Ok(())
    }

    /// Whether a stream captures.
    pub(crate) fn has(&self, stream: StreamId) -> bool {
        self.streams.contains_key(&stream)
    }

    /// The capture of a stream.
    pub(crate) fn of(&self, stream: StreamId) -> Option<CaptureState> {
        let capture = self.streams.get(&stream)?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(CaptureState {
            id: capture.id,
            is_valid: !capture.is_invalid,
            graph: capture.graph.clone(),
            reached: capture.reached.get(&stream).cloned().unwrap_or_default(),
        })
    }

    /// Changes which nodes the next one of a stream comes after.
    pub(crate) fn set_reached(&mut self, stream: StreamId, nodes: Vec<u32>) -> Answer {
        let shared = self.streams.get(&stream).ok_or(Code::ILLEGAL_STATE)?;
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if capture.is_invalid {
            return Err(CAPTURE_INVALIDATED);
        }
        capture.reached.insert(stream, nodes);
        Ok(())
    }

    /// Makes a capture useless, because its stream was used for what cannot be captured.
    pub(crate) fn spoil(&mut self, stream: StreamId) {
        if let Some(capture) = self.streams.get(&stream) {
            capture.lock().unwrap_or_else(PoisonError::into_inner).is_invalid = true;
        }
    }

    /// Whether one of some streams captures.
    pub(crate) fn has_any(&self, is_meant: impl Fn(StreamId) -> bool) -> bool {
        self.streams.keys().any(|stream| is_meant(*stream))
    }

    /// Makes the captures of some streams useless; whether there was one.
    pub(crate) fn spoil_any(&mut self, is_meant: impl Fn(StreamId) -> bool) -> bool {
        let meant: Vec<StreamId> = self.streams.keys().copied().filter(|stream| is_meant(*stream)).collect();
        meant.iter().for_each(|stream| self.spoil(*stream));
        !meant.is_empty()
    }

    /// The same for the capture in which an event was recorded, and what the call is told.
    pub(crate) fn spoil_by(&mut self, event: EventId) -> Code {
        let Some((shared, _)) = self.events.get(&event) else { return Code::INVALID_VALUE };
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = self.streams.get(&capture.origin).is_some_and(|other| Arc::ptr_eq(other, shared));
        if !is_running || capture.is_invalid {
            return Code::INVALID_VALUE;
        }
        capture.is_invalid = true;
        CAPTURED_EVENT
    }

    /// Refuses a call that may wait for the device, if a capture forbids it to this thread, and ends the use of that capture.
    pub(crate) fn refuse_unsafe(&mut self) -> Answer {
        let (thread, wanted) = (std::thread::current().id(), OF_THREAD.get());
        let mut answer = Ok(());
        for shared in self.streams.values() {
            let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let is_ours = capture.thread == thread;
            let is_forbidden = match (wanted, capture.mode) {
                (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
                (CaptureMode::Global, CaptureMode::Global) => true,
                _ => is_ours,
            };
            if is_forbidden {
                capture.is_invalid = true;
                answer = Err(CAPTURE_UNSUPPORTED);
            }
        }
        answer
    }

    /// Takes a command, if its stream captures; whether it did.
    pub(crate) fn take(&mut self, stream: StreamId, command: &Command<'_>) -> Answer<bool> {
        let joined = match command {
            Command::Wait(event) => self.events.get(event).cloned(),
            _ => None,
        };
        if let Some((capture, nodes)) = joined {
            return self.join(stream, &capture, &nodes).map(|()| true);
        }
        let Some(shared) = self.streams.get(&stream).cloned() else { return Ok(false) };
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if capture.is_invalid {
            return Err(CAPTURE_INVALIDATED);
        }
        let reached = capture.reached.get(&stream).cloned().unwrap_or_default();
        match command {
            Command::Signal(event) => {
                self.events.insert(*event, (shared.clone(), reached));
            }
            // What the capture waits for would have to be part of it.
            Command::Wait(_) => {
                capture.is_invalid = true;
                return Err(CAPTURE_ISOLATION);
            }
            other => match NodeWork::of(other) {
                Some(work) => capture.add(stream, work),
                None => {
                    capture.is_invalid = true;
                    return Err(CAPTURE_UNSUPPORTED);
                }
            },
        }
        Ok(true)
    }

    /// Adds work to the capture of a stream.
    pub(crate) fn record(&mut self, stream: StreamId, work: NodeWork) -> Answer {
        let shared = self.streams.get(&stream).ok_or(Code::ILLEGAL_STATE)?;
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if capture.is_invalid {
            return Err(CAPTURE_INVALIDATED);
        }
        capture.add(stream, work);
        Ok(())
    }

    /// A stream waits for nodes of a capture.
    fn join(&mut self, stream: StreamId, shared: &SharedCapture, nodes: &[u32]) -> Answer {
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = self.streams.get(&capture.origin).is_some_and(|other| Arc::ptr_eq(other, shared));
        if !is_running {
            return Err(Code::INVALID_VALUE);
        }
        if capture.is_invalid {
            return Err(CAPTURE_INVALIDATED);
        }
        if let Some(other) = self.streams.get(&stream).filter(|other| !Arc::ptr_eq(other, shared)) {
            capture.is_invalid = true;
            other.lock().unwrap_or_else(PoisonError::into_inner).is_invalid = true;
            return Err(CAPTURE_MERGE);
        }
        let reached = capture.reached.entry(stream).or_default();
        reached.extend(nodes);
        reached.sort_unstable();
        reached.dedup();
        self.streams.insert(stream, shared.clone());
        Ok(())
    }

    /// Ends the capture that a stream began, and says what came of it with its graph.
    pub(crate) fn end(&mut self, stream: StreamId) -> Answer<(CaptureGraph, Answer)> {
        let shared = self.streams.get(&stream).cloned().ok_or(Code::ILLEGAL_STATE)?;
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if capture.origin != stream {
            capture.is_invalid = true;
            return Err(CAPTURE_UNMATCHED);
        }
        self.streams.retain(|_, other| !Arc::ptr_eq(other, &shared));
        let ended = match () {
            () if capture.is_invalid => Err(CAPTURE_INVALIDATED),
            () if capture.has_unjoined() => Err(CAPTURE_UNJOINED),
            () => Ok(()),
        };
        Ok((capture.graph.clone(), ended))
    }

    /// A stream is destroyed; the capture that it began ends with it.
    pub(crate) fn leave(&mut self, stream: StreamId) {
        let Some(shared) = self.streams.remove(&stream) else { return };
        if shared.lock().unwrap_or_else(PoisonError::into_inner).origin == stream {
            self.streams.retain(|_, other| !Arc::ptr_eq(other, &shared));
        }
    }

    /// An event is recorded outside of captures, or gone.
    pub(crate) fn forget(&mut self, event: EventId) {
        self.events.remove(&event);
    }
}

impl Capture {
    /// Adds a node behind those that a stream has reached.
    fn add(&mut self, stream: StreamId, work: NodeWork) {
        let after = self.reached.remove(&stream).unwrap_or_default();
        let node = self.graph.graph.body().add(work, after);
        self.reached.insert(stream, vec![node]);
    }

    /// Whether a stream has nodes that the origin did not wait for.
    fn has_unjoined(&self) -> bool {
        let body = self.graph.graph.body();
        let mut known = BTreeSet::new();
        let mut open: Vec<u32> = self.reached.get(&self.origin).cloned().unwrap_or_default();
        while let Some(node) = open.pop() {
            if known.insert(node) {
                open.extend(body.get(node).map(|node| node.after.as_slice()).unwrap_or_default());
            }
        }
        self.reached.values().flatten().any(|node| !known.contains(node))
    }
}
