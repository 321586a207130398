//! Stream capture: work that is recorded instead of queued.
//!
//! A stream that captures adds a node for each command, after the nodes that it has reached. An event that is recorded there remembers those
//! nodes, and a stream that waits for the event joins the capture after them.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use kiln_driver::{Code, Command, EventId, StreamId};

use crate::boundary::Answer;
use crate::calls::graph_body::GraphBody;
use crate::calls::graph_work::NodeWork;

pub(crate) const CAPTURE_UNSUPPORTED: Code = Code(900);
const CAPTURE_INVALIDATED: Code = Code(901);
const CAPTURE_MERGE: Code = Code(902);
const CAPTURE_UNMATCHED: Code = Code(903);
const CAPTURE_UNJOINED: Code = Code(904);
const CAPTURE_ISOLATION: Code = Code(905);
const CAPTURED_EVENT: Code = Code(907);

/// A capture, shared by the streams that take part.
type SharedCapture = Arc<Mutex<Capture>>;

struct Capture {
    id: u64,
    origin: StreamId,
    nodes: Vec<CapturedNode>,
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

/// One command of a capture, with the nodes it comes after.
#[derive(Clone)]
struct CapturedNode {
    work: NodeWork,
    after: Vec<u32>,
}

/// The captures of a context.
#[derive(Default)]
pub(crate) struct Captures {
    streams: HashMap<StreamId, SharedCapture>,
    events: HashMap<EventId, (SharedCapture, Vec<u32>)>,
    begun: u64,
}

impl Captures {
    pub(crate) fn begin(&mut self, stream: StreamId, mode: CaptureMode) -> Answer {
        if self.streams.contains_key(&stream) {
            return Err(Code::ILLEGAL_STATE);
        }
        self.begun += 1;
        let reached = HashMap::from([(stream, Vec::new())]);
        let (nodes, thread) = (Vec::new(), std::thread::current().id());
        let capture =
            Capture { id: self.begun, origin: stream, nodes, reached, is_invalid: false, mode, thread };
        self.streams.insert(stream, Arc::new(Mutex::new(capture)));
        Ok(())
    }

    /// Whether a stream captures: its capture's number, and whether it is still valid.
    pub(crate) fn of(&self, stream: StreamId) -> Option<(u64, bool)> {
        let capture = self.streams.get(&stream)?.lock().unwrap_or_else(PoisonError::into_inner);
        Some((capture.id, !capture.is_invalid))
    }

    /// Makes a capture useless, because its stream was used for what cannot be captured.
    pub(crate) fn spoil(&mut self, stream: StreamId) {
        if let Some(capture) = self.streams.get(&stream) {
            capture.lock().unwrap_or_else(PoisonError::into_inner).is_invalid = true;
        }
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
                Some(work) => {
                    let node = capture.nodes.len() as u32;
                    capture.nodes.push(CapturedNode { work, after: reached });
                    capture.reached.insert(stream, vec![node]);
                }
                None => {
                    capture.is_invalid = true;
                    return Err(CAPTURE_UNSUPPORTED);
                }
            },
        }
        Ok(true)
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

    /// Ends the capture that a stream began.
    pub(crate) fn end(&mut self, stream: StreamId) -> Answer<GraphBody> {
        let shared = self.streams.get(&stream).cloned().ok_or(Code::ILLEGAL_STATE)?;
        let mut capture = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if capture.origin != stream {
            capture.is_invalid = true;
            return Err(CAPTURE_UNMATCHED);
        }
        self.streams.retain(|_, other| !Arc::ptr_eq(other, &shared));
        if capture.is_invalid {
            return Err(CAPTURE_INVALIDATED);
        }
        if capture.has_unjoined() {
            return Err(CAPTURE_UNJOINED);
        }
        // The numbers of the nodes are their places in the list.
        let mut body = GraphBody::default();
        for node in std::mem::take(&mut capture.nodes) {
            body.add(node.work, node.after);
        }
        Ok(body)
    }

    /// An event is recorded outside of captures, or gone.
    pub(crate) fn forget(&mut self, event: EventId) {
        self.events.remove(&event);
    }
}

impl Capture {
    /// Whether a stream has nodes that the origin did not wait for.
    fn has_unjoined(&self) -> bool {
        let mut known = vec![false; self.nodes.len()];
        let mut open: Vec<u32> = self.reached.get(&self.origin).cloned().unwrap_or_default();
        while let Some(node) = open.pop() {
            if let Some(seen) = known.get_mut(node as usize).filter(|seen| !**seen) {
                *seen = true;
                open.extend(
                    self.nodes.get(node as usize).map(|node| node.after.as_slice()).unwrap_or_default(),
                );
            }
        }
        let is_known = |node: &u32| known.get(*node as usize).copied().unwrap_or(true);
        self.reached.values().flatten().any(|node| !is_known(node))
    }
}
