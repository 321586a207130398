//! The client's connection to one worker.
//!
//! Each worker has one link. Requests are pushed under one lock, so that their order in the ring is the order of their submission numbers.
//! Questions are asked one at a time, because the worker answers one at a time. A lost link stays lost, with its cause; the next worker gets a
//! new link.

use std::io::ErrorKind;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::{Error, Result, Site, Submission};

use super::loss_cause::LossCause;
use super::stream_table::StreamTable;
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::protocol_error::ProtocolViolation;
use crate::protocol::ring::{RingReader, RingWriter};
use crate::protocol::segment::{ABORTS, COMMANDS, Condition, NOTICES, Segment};
use crate::protocol::socket::Socket;
use crate::protocol::wire::{Ask, Malformed, Put, Reader, Request, Take, Writer, take_error};

/// How long a waiting thread sleeps at most. It is woken when the worker is lost; this covers a worker that overwrote the event count.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// How long after its socket a process may end.
const EXIT_DELAY_LIMIT: Duration = Duration::from_secs(1);
/// How long to wait for a descriptor, which was sent before the answer it belongs to.
const DESCRIPTOR_LIMIT: Duration = Duration::from_secs(1);

/// The connection to one worker.
pub(crate) struct Link {
    pub(crate) segment: Segment,
    pub(crate) socket: Socket,
    sender: Mutex<Outbox>,
    aborts: Mutex<RingWriter>,
    questions: Mutex<u64>,
    notices: Mutex<RingReader>,
    lost: OnceLock<Lost>,
    spin: Duration,
    /// The number of the open question; zero if there is none.
    open: AtomicU64,
    /// How many questions it consists of.
    asked_count: AtomicU32,
    examinations: AtomicU64,
    streams: Arc<StreamTable>,
}

struct Outbox {
    ring: RingWriter,
    scratch: Writer,
}

/// Why and when a link was lost.
pub(crate) struct Lost {
    pub(crate) cause: LossCause,
    pub(crate) at: Instant,
}

/// The submission an error belongs to, as the worker names it.
struct WireSite {
    stream: u64,
    number: u64,
    command: String,
}

/// A submission that failed after it was accepted.
pub(crate) struct LateFailure {
    pub(crate) stream: u64,
    pub(crate) number: u64,
    pub(crate) error: Error,
}

impl Link {
    pub(crate) fn new(segment: Segment, socket: Socket, spin: Duration, streams: Arc<StreamTable>) -> Self {
        Self {
            sender: Mutex::new(Outbox {
                ring: RingWriter::new(segment.bytes(), COMMANDS),
                scratch: Writer::new(),
            }),
            aborts: Mutex::new(RingWriter::new(segment.bytes(), ABORTS)),
            notices: Mutex::new(RingReader::new(segment.bytes(), NOTICES)),
            segment,
            socket,
            questions: Mutex::new(0),
            lost: OnceLock::new(),
            spin,
            open: AtomicU64::new(0),
            asked_count: AtomicU32::new(1),
            examinations: AtomicU64::new(0),
            streams,
        }
    }

    /// Why it is lost, if it is.
    pub(crate) fn lost(&self) -> Option<&Lost> {
        if self.lost.get().is_none() && self.segment.has_fault() {
            self.read_fault();
        }
        self.lost.get()
    }

    /// Refuses a call on a lost link.
    pub(crate) fn check(&self, call: &'static str) -> Result<()> {
        match self.lost() {
            Some(lost) => Err(lost.cause.error(call)),
            None => Ok(()),
        }
    }

    /// Marks the link as lost and wakes every waiting thread. The first cause is kept.
    pub(crate) fn mark_lost(&self, cause: LossCause) {
        if self.segment.has_fault() {
            self.read_fault();
        }
        let _ = self.lost.set(Lost { cause, at: Instant::now() });
        self.segment.wake_client();
    }

    /// Marks the link as lost because the worker broke the protocol, and returns the error of a call.
    pub(crate) fn violated(&self, call: &'static str, violation: ProtocolViolation) -> Error {
        self.mark_lost(LossCause::Violation(violation));
        match self.lost.get() {
            Some(lost) => lost.cause.error(call),
            None => LossCause::Violation(violation).error(call),
        }
    }

    fn read_fault(&self) {
        let read = || {
            let bytes =
                self.segment.read_fault().ok_or(Malformed { what: "a fault of an impossible length" })?;
            let mut reader = Reader::new(&bytes);
            let (error, site) = take_error_and_site(&mut reader)?;
            reader.end()?;
            if !error.is_sticky() {
                return Err(Malformed { what: "a fault whose error is none" });
            }
            Ok((error, site))
        };
        let at = Instant::now();
        let lost = match read() {
            Ok((error, site)) => Lost { cause: LossCause::Fault(self.locate(error, site)), at },
            Err(malformed) => Lost { cause: LossCause::Violation(ProtocolViolation::from(malformed)), at },
        };
        let _ = self.lost.set(lost);
    }

    /// Adds the site to an error, with the client's handle of the stream.
    fn locate(&self, error: Error, site: Option<WireSite>) -> Error {
        let site = site.and_then(|WireSite { stream, number, command }| {
            let stream = self.streams.name(stream)?;
            Some(Site { stream, submission: Submission(number), command })
        });
        match site {
            Some(site) => error.at(site),
            None => error,
        }
    }

    /// Locks the ring for sending. Requests that are pushed under one lock are adjacent in the ring.
    pub(crate) fn sender(&self) -> Sender<'_> {
        Sender { link: self, outbox: self.sender.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Sends a request that has no answer.
    pub(crate) fn send(&self, call: &'static str, request: &Request<'_>) -> Result<()> {
        self.sender().push(call, request)
    }

    /// Has the worker end a rank of a communicator at once, also while it is inside of a call that waits for the other ranks. It waits for nothing. What cannot be said here is done when the
    /// request in the other ring has its turn.
    pub(crate) fn abort(&self, module: u64) {
        let mut aborts = self.aborts.lock().unwrap_or_else(PoisonError::into_inner);
        // Full or damaged: the worker reads none of them.
        let _ = aborts.push(&module.to_le_bytes());
        self.segment.event_count(Condition::Aborts).notify();
    }

    /// Asks a question and waits for the answer, which `read` decodes.
    pub(crate) fn ask<T>(
        &self,
        call: &'static str,
        ask: &Ask<'_>,
        descriptor: Option<BorrowedFd<'_>>,
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, Malformed>,
    ) -> Result<(T, Option<OwnedFd>)> {
        self.ask_with(call, ask, descriptor.as_slice(), read)
    }

    /// Asks several questions at once, each with a descriptor if it needs one. Returns one answer or more: the worker stops at the first
    /// refusal, and when the answers become long. Questions without an answer were not carried out.
    pub(crate) fn ask_all(
        &self,
        call: &'static str,
        asks: Vec<(Ask<'_>, Option<BorrowedFd<'_>>)>,
    ) -> Result<Vec<Result<Vec<u8>>>> {
        let descriptors: Vec<BorrowedFd<'_>> =
            asks.iter().filter_map(|(_, descriptor)| *descriptor).collect();
        let asks: Vec<Ask<'_>> = asks.into_iter().map(|(ask, _)| ask).collect();
        let count = asks.len();
        let (answers, _) = self.ask_with(call, &Ask::Batch { asks }, &descriptors, |reader| {
            let answers: Vec<Answer> = Take::take(reader)?;
            let refused = answers.iter().position(|answer| answer.0.is_err());
            let is_last = refused.is_none_or(|at| at + 1 == answers.len());
            if is_last && (1..=count).contains(&answers.len()) {
                Ok(answers)
            } else {
                Err(Malformed { what: "answers that do not match their questions" })
            }
        })?;
        let located = |Answer(answer)| match answer {
            Ok(bytes) => Ok(bytes),
            Err((error, site)) => Err(self.locate(error, site).seen_by(call)),
        };
        Ok(answers.into_iter().map(located).collect())
    }

    fn ask_with<T>(
        &self,
        call: &'static str,
        ask: &Ask<'_>,
        descriptors: &[BorrowedFd<'_>],
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, Malformed>,
    ) -> Result<(T, Option<OwnedFd>)> {
        self.check(call)?;
        let mut number = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        *number += 1;
        self.send_question(call, *number, ask, descriptors)?;
        let count = if let Ask::Batch { asks } = ask { asks.len().max(1) } else { 1 };
        self.asked_count.store(count.try_into().unwrap_or(u32::MAX), Ordering::Relaxed);
        self.open.store(*number, Ordering::Release);
        let answered = || self.segment.replied().load(Ordering::Acquire) >= *number;
        let waiters = self.segment.event_count(Condition::Reply);
        while !waiters.wait_until(self.spin, Some(LONGEST_SLEEP), || answered() || self.lost().is_some()) {}
        self.open.store(0, Ordering::Relaxed);
        if !answered() {
            self.check(call)?;
        }
        if self.segment.replied().load(Ordering::Acquire) != *number {
            return Err(self.violated(call, ProtocolViolation::new("an answer to another question")));
        }
        let answer = self.segment.read_reply();
        let answer =
            answer.ok_or_else(|| self.violated(call, ProtocolViolation::new("an answer too long")))?;
        let mut reader = Reader::new(&answer);
        match self.open_answer(&mut reader, read) {
            Ok(answer) => answer.map_err(|error| error.seen_by(call)),
            Err(violation) => Err(self.violated(call, violation)),
        }
    }

    /// The worker closed its socket. Its process is ending, which is known a moment later with its status; if it keeps running it cannot be
    /// used.
    fn socket_closed(&self, call: &'static str) -> Error {
        let ended = || self.lost().is_some();
        self.segment.event_count(Condition::Reply).wait_until(self.spin, Some(EXIT_DELAY_LIMIT), ended);
        match self.lost() {
            Some(lost) => lost.cause.error(call),
            None => self.violated(call, ProtocolViolation::new("a socket that it closed")),
        }
    }

    fn send_question(
        &self,
        call: &'static str,
        number: u64,
        ask: &Ask<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let parcel = Writer::of(ask);
        let long = parcel.len() + 64 > COMMANDS.longest();
        let no_descriptor = |error: std::io::Error| {
            let why = format!("it could not send a descriptor to the worker ({error})");
            let handle = "the system".into();
            Error::refused(call, kiln_driver::Refusal::Busy { handle, why })
        };
        let file = long.then(|| MemoryFile::holding(&parcel)).transpose().map_err(no_descriptor)?;
        let all = file.as_ref().map(MemoryFile::descriptor).into_iter().chain(descriptors.iter().copied());
        for descriptor in all {
            self.socket.send(&number.to_le_bytes(), Some(descriptor)).map_err(|error| {
                match error.kind() {
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                        self.socket_closed(call)
                    }
                    _ => no_descriptor(error),
                }
            })?;
        }
        match file {
            Some(file) => self.send(call, &Request::Parcel { number, bytes: file.bytes() }),
            None => self.send(call, &Request::Ask { number, ask: ask.clone() }),
        }
    }

    #[allow(clippy::type_complexity)]
    fn open_answer<T>(
        &self,
        reader: &mut Reader<'_>,
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, Malformed>,
    ) -> std::result::Result<Result<(T, Option<OwnedFd>)>, ProtocolViolation> {
        let descriptor = match reader.u8()? {
            0 => {
                let (error, site) = take_error_and_site(reader)?;
                return Ok(Err(self.locate(error, site)));
            }
            1 => None,
            2 => {
                let received = self.socket.receive(DESCRIPTOR_LIMIT);
                let descriptor = received.ok().and_then(|received| received.descriptor);
                Some(descriptor.ok_or(ProtocolViolation::new("a descriptor that was not sent"))?)
            }
            _ => return Err(ProtocolViolation::new("an answer of an unknown kind")),
        };
        let value = read(reader)?;
        reader.clone().end()?;
        Ok(Ok((value, descriptor)))
    }

    /// Waits until a condition is true, the limit is over or the link is lost. Returns whether the condition is true.
    pub(crate) fn wait_for(&self, limit: Option<Duration>, mut done: impl FnMut() -> bool) -> bool {
        let limit = limit.map_or(LONGEST_SLEEP, |limit| limit.min(LONGEST_SLEEP));
        let waiters = self.segment.event_count(Condition::Progress);
        waiters.wait_until(self.spin, Some(limit), || done() || self.lost().is_some());
        done()
    }

    /// Asks the worker to check the health of the device, and waits for that up to a limit.
    pub(crate) fn examine(&self, call: &'static str, limit: Duration) -> Result<()> {
        let number = self.examinations.fetch_add(1, Ordering::Relaxed) + 1;
        self.send(call, &Request::Examine { number })?;
        self.wait_for(Some(limit), || self.segment.examined().load(Ordering::Acquire) >= number);
        self.check(call)
    }

    /// Failures that arrived since the last call.
    pub(crate) fn late_failures(&self) -> std::result::Result<Vec<LateFailure>, ProtocolViolation> {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut message, mut failures) = (Vec::new(), Vec::new());
        while notices.is_ready() && notices.pop(&mut message)? {
            let mut reader = Reader::new(&message);
            let (stream, number) = (reader.u64()?, reader.u64()?);
            let error = take_error(&mut reader)?;
            reader.end()?;
            failures.push(LateFailure { stream, number, error });
        }
        Ok(failures)
    }

    /// The question that the worker has not answered yet, if there is one.
    pub(crate) fn open_question(&self) -> Option<OpenQuestion> {
        let number = self.open.load(Ordering::Acquire);
        (number != 0).then(|| OpenQuestion { number, count: self.asked_count.load(Ordering::Relaxed) })
    }

    /// Whether the worker has taken every request out of the ring.
    pub(crate) fn is_drained(&self) -> bool {
        self.sender.try_lock().is_ok_and(|outbox| outbox.ring.is_drained())
    }
}

/// A question that is not answered yet.
pub(crate) struct OpenQuestion {
    /// Its number, which is unique on this link.
    pub(crate) number: u64,
    /// How many questions it is made of.
    pub(crate) count: u32,
}

/// Exclusive access to the sending end of the ring.
pub(crate) struct Sender<'a> {
    link: &'a Link,
    outbox: MutexGuard<'a, Outbox>,
}

impl Sender<'_> {
    /// Puts a request into the ring, waiting for room if necessary.
    pub(crate) fn push(&mut self, call: &'static str, request: &Request<'_>) -> Result<()> {
        let link = self.link;
        link.check(call)?;
        let Outbox { ring, scratch } = &mut *self.outbox;
        scratch.clear();
        request.put(scratch);
        loop {
            match ring.push(scratch.bytes()) {
                Ok(true) => break,
                Ok(false) => {}
                Err(violation) => return Err(link.violated(call, violation)),
            }
            let mut pushed = Ok(false);
            let ready = || {
                pushed = ring.push(scratch.bytes());
                !matches!(pushed, Ok(false)) || link.lost().is_some()
            };
            link.segment.event_count(Condition::Room).wait_until(link.spin, Some(LONGEST_SLEEP), ready);
            match pushed {
                Ok(true) => break,
                Ok(false) => link.check(call)?,
                Err(violation) => return Err(link.violated(call, violation)),
            }
        }
        link.segment.event_count(Condition::Commands).notify();
        Ok(())
    }
}

/// One answer of a batch: its bytes, or the error.
struct Answer(std::result::Result<Vec<u8>, (Error, Option<WireSite>)>);

impl Take for Answer {
    fn take(from: &mut Reader<'_>) -> std::result::Result<Self, Malformed> {
        let bytes = from.slice()?;
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            0 => {
                let refused = take_error_and_site(&mut reader)?;
                reader.end()?;
                Ok(Self(Err(refused)))
            }
            1 => Ok(Self(Ok(bytes.get(1..).unwrap_or_default().to_vec()))),
            _ => Err(Malformed { what: "an answer in a batch of an unknown kind" }),
        }
    }
}

fn take_error_and_site(reader: &mut Reader<'_>) -> std::result::Result<(Error, Option<WireSite>), Malformed> {
    let error = take_error(reader)?;
    let site = if bool::take(reader)? {
        Some(WireSite { stream: reader.u64()?, number: reader.u64()?, command: String::take(reader)? })
    } else {
        None
    };
    Ok((error, site))
}
