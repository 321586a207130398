//! The client's end of one worker.
//!
//! A link lives as long as its worker. Commands are pushed under one lock, so that their order in the ring is the order
//! of their numbers; questions are asked one at a time, because the worker answers one at a time. Once lost, a link
//! is lost for good, with its cause; the next worker gets a link of its own.

use std::io::ErrorKind;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::{Error, Result, Site, Submission};

use crate::area::{Area, COMMANDS, NOTICES, Sleep};
use crate::cause::Cause;
use crate::ring::{RingReader, RingWriter};
use crate::shared_file::SharedFile;
use crate::socket::Socket;
use crate::streams::StreamTable;
use crate::violation::Violation;
use crate::wire::{Ask, Malformed, Put, Reader, Request, Take, Writer, take_error};

/// How long a sleeper goes without looking whether its worker is still there. It is woken if not; this is for the case
/// that the worker scribbled over the bell.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long the end of a process may stay behind that of its socket.
const HANG_UP_LIMIT: Duration = Duration::from_secs(1);
/// A descriptor was sent before the answer that says so.
const DESCRIPTOR_LIMIT: Duration = Duration::from_secs(1);

/// One worker, as its client sees it.
pub(crate) struct Link {
    pub(crate) area: Area,
    pub(crate) socket: Socket,
    sender: Mutex<Outbox>,
    questions: Mutex<u64>,
    notices: Mutex<RingReader>,
    lost: OnceLock<Lost>,
    spin: Duration,
    /// The number of the question that is open; zero if none is.
    open: AtomicU64,
    /// How many questions that is: as many as a batch has.
    asked_count: AtomicU32,
    examinations: AtomicU64,
    streams: Arc<StreamTable>,
}

struct Outbox {
    ring: RingWriter,
    scratch: Writer,
}

/// How a link ended.
pub(crate) struct Lost {
    pub(crate) cause: Cause,
    pub(crate) at: Instant,
}

/// The submission an error belongs to, as it travels.
struct WireSite {
    stream: u64,
    number: u64,
    command: String,
}

/// The submission that failed late.
pub(crate) struct LateFailure {
    pub(crate) stream: u64,
    pub(crate) number: u64,
    pub(crate) error: Error,
}

impl Link {
    pub(crate) fn new(area: Area, socket: Socket, spin: Duration, streams: Arc<StreamTable>) -> Self {
        Self {
            sender: Mutex::new(Outbox {
                ring: RingWriter::new(area.bytes(), COMMANDS),
                scratch: Writer::new(),
            }),
            notices: Mutex::new(RingReader::new(area.bytes(), NOTICES)),
            area,
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

    /// How it ended, if it did.
    pub(crate) fn lost(&self) -> Option<&Lost> {
        if self.lost.get().is_none() && self.area.has_fault() {
            self.read_fault();
        }
        self.lost.get()
    }

    /// Refuses a call on a link that ended.
    pub(crate) fn check(&self, call: &'static str) -> Result<()> {
        match self.lost() {
            Some(lost) => Err(lost.cause.error(call)),
            None => Ok(()),
        }
    }

    /// Ends the link; the first cause counts. Everybody who waits is woken.
    pub(crate) fn condemn(&self, cause: Cause) {
        if self.area.has_fault() {
            self.read_fault();
        }
        let _ = self.lost.set(Lost { cause, at: Instant::now() });
        self.area.wake_client();
    }

    /// Ends the link because the worker broke the protocol, and says so.
    pub(crate) fn violated(&self, call: &'static str, violation: Violation) -> Error {
        self.condemn(Cause::Violation(violation));
        match self.lost.get() {
            Some(lost) => lost.cause.error(call),
            None => Cause::Violation(violation).error(call),
        }
    }

    fn read_fault(&self) {
        let read = || {
            let bytes = self.area.read_fault().ok_or(Malformed { what: "a fault of no possible length" })?;
            let mut reader = Reader::new(&bytes);
            let (error, site) = take_error_and_site(&mut reader)?;
            reader.end()?;
            if !error.is_sticky() {
                return Err(Malformed { what: "a fault that is none" });
            }
            Ok((error, site))
        };
        let at = Instant::now();
        let lost = match read() {
            Ok((error, site)) => Lost { cause: Cause::Fault(self.locate(error, site)), at },
            Err(malformed) => Lost { cause: Cause::Violation(Violation::from(malformed)), at },
        };
        let _ = self.lost.set(lost);
    }

    /// The same error with the client's own handle of the stream it came from.
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

    /// The end messages go through. What is pushed while this is held stands together in the ring.
    pub(crate) fn sender(&self) -> Sender<'_> {
        Sender { link: self, outbox: self.sender.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Sends a message nobody answers.
    pub(crate) fn send(&self, call: &'static str, request: &Request<'_>) -> Result<()> {
        self.sender().push(call, request)
    }

    /// Asks and waits for the answer, which `read` reads.
    pub(crate) fn ask<T>(
        &self,
        call: &'static str,
        ask: &Ask<'_>,
        descriptor: Option<BorrowedFd<'_>>,
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, Malformed>,
    ) -> Result<(T, Option<OwnedFd>)> {
        self.ask_with(call, ask, descriptor.as_slice(), read)
    }

    /// Asks several questions at once, each perhaps with a descriptor. There are as many answers as were given, at
    /// least one; only the last may be a refusal, and what comes behind it was not done.
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
                Err(Malformed { what: "answers that do not belong to their questions" })
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
        let answered = || self.area.replied().load(Ordering::Acquire) >= *number;
        let bell = self.area.bell(Sleep::Reply);
        while !bell.sleep_until(self.spin, Some(LOOK_AGAIN), || answered() || self.lost().is_some()) {}
        self.open.store(0, Ordering::Relaxed);
        if !answered() {
            self.check(call)?;
        }
        if self.area.replied().load(Ordering::Acquire) != *number {
            return Err(self.violated(call, Violation::new("an answer to a question nobody asked")));
        }
        let answer = self.area.read_reply();
        let answer = answer.ok_or_else(|| self.violated(call, Violation::new("an answer too long")))?;
        let mut reader = Reader::new(&answer);
        match self.open_answer(&mut reader, read) {
            Ok(answer) => answer.map_err(|error| error.seen_by(call)),
            Err(violation) => Err(self.violated(call, violation)),
        }
    }

    /// The worker closed its socket. Its process ends, which is known a moment later and with its status; one that goes on cannot be used.
    fn hung_up(&self, call: &'static str) -> Error {
        let ended = || self.lost().is_some();
        self.area.bell(Sleep::Reply).sleep_until(self.spin, Some(HANG_UP_LIMIT), ended);
        match self.lost() {
            Some(lost) => lost.cause.error(call),
            None => self.violated(call, Violation::new("a socket that it closed")),
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
            let why = format!("no descriptor could be sent to the worker ({error})");
            let handle = "the system".into();
            Error::refused(call, kiln_driver::Refusal::Busy { handle, why })
        };
        let file = long.then(|| SharedFile::holding(&parcel)).transpose().map_err(no_descriptor)?;
        let all = file.as_ref().map(SharedFile::descriptor).into_iter().chain(descriptors.iter().copied());
        for descriptor in all {
            self.socket.send(&number.to_le_bytes(), Some(descriptor)).map_err(|error| {
                match error.kind() {
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                        self.hung_up(call)
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
    ) -> std::result::Result<Result<(T, Option<OwnedFd>)>, Violation> {
        let descriptor = match reader.u8()? {
            0 => {
                let (error, site) = take_error_and_site(reader)?;
                return Ok(Err(self.locate(error, site)));
            }
            1 => None,
            2 => {
                let received = self.socket.receive(DESCRIPTOR_LIMIT);
                let descriptor = received.ok().and_then(|received| received.descriptor);
                Some(descriptor.ok_or(Violation::new("a descriptor that did not come"))?)
            }
            _ => return Err(Violation::new("an answer that is neither yes nor no")),
        };
        let value = read(reader)?;
        reader.clone().end()?;
        Ok(Ok((value, descriptor)))
    }

    /// Waits until something is done, the time is over or the link ends. Says whether it is done.
    pub(crate) fn wait_for(&self, limit: Option<Duration>, mut done: impl FnMut() -> bool) -> bool {
        let limit = limit.map_or(LOOK_AGAIN, |limit| limit.min(LOOK_AGAIN));
        let bell = self.area.bell(Sleep::Progress);
        bell.sleep_until(self.spin, Some(limit), || done() || self.lost().is_some());
        done()
    }

    /// Asks the worker to look at the device, and waits for that a little.
    pub(crate) fn examine(&self, call: &'static str, limit: Duration) -> Result<()> {
        let number = self.examinations.fetch_add(1, Ordering::Relaxed) + 1;
        self.send(call, &Request::Examine { number })?;
        self.wait_for(Some(limit), || self.area.examined().load(Ordering::Acquire) >= number);
        self.check(call)
    }

    /// Failures that arrived since the last look.
    pub(crate) fn late_failures(&self) -> std::result::Result<Vec<LateFailure>, Violation> {
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

    /// The question that the worker has not answered yet.
    pub(crate) fn open_question(&self) -> Option<OpenQuestion> {
        let number = self.open.load(Ordering::Acquire);
        (number != 0).then(|| OpenQuestion { number, count: self.asked_count.load(Ordering::Relaxed) })
    }

    /// Whether the worker took everything out of the ring.
    pub(crate) fn is_drained(&self) -> bool {
        self.sender.try_lock().is_ok_and(|outbox| outbox.ring.is_drained())
    }
}

/// A question that is open.
pub(crate) struct OpenQuestion {
    /// No other one of this link has it.
    pub(crate) number: u64,
    /// How many questions it is made of.
    pub(crate) count: u32,
}

/// Sole hold on the way into the ring.
pub(crate) struct Sender<'a> {
    link: &'a Link,
    outbox: MutexGuard<'a, Outbox>,
}

impl Sender<'_> {
    /// Puts a message into the ring, and waits for room where there is none.
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
            link.area.bell(Sleep::Room).sleep_until(link.spin, Some(LOOK_AGAIN), ready);
            match pushed {
                Ok(true) => break,
                Ok(false) => link.check(call)?,
                Err(violation) => return Err(link.violated(call, violation)),
            }
        }
        link.area.bell(Sleep::Commands).ring();
        Ok(())
    }
}

/// One answer of several: what it says, or why not.
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
            _ => Err(Malformed { what: "an answer of several that is neither yes nor no" }),
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
