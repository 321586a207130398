//! The main loop of a worker: takes a request out of the ring and carries it out.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use kiln_driver::{EventRequest, MemoryRequest, Result, StreamRequest};

use super::command_decoder::declared;
use super::completion_poller::{ProgressWatcher, Watch};
use super::fault_reporter::FaultReporter;
use super::object_table::{EventEntry, ObjectTable, StreamEntry, find};
use super::opened_device::OpenedDevice;
use super::rank_aborter::RankAborter;
use super::submission_numbers::SubmissionNumbers;
use super::work_times::WorkTimes;
use super::{Observer, SharedDriver, WorkerStep};
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::protocol_error::ProtocolViolation;
use crate::protocol::ring::RingReader;
use crate::protocol::segment::{COMMANDS, Condition, Segment};
use crate::protocol::socket::Socket;
use crate::protocol::wire::{Ask, Farewell, Reader, Request, WireCommand, WireObject, Writer};

/// How long to wait for a descriptor, which was sent before the request that needs it.
const DESCRIPTOR_LIMIT: Duration = Duration::from_secs(5);

/// Serves the requests of a client.
pub(super) struct Server {
    pub(super) segment: Segment,
    pub(super) socket: Arc<Socket>,
    pub(super) driver: SharedDriver,
    pub(super) table: ObjectTable,
    pub(super) reporter: Arc<FaultReporter>,
    pub(super) observe: Arc<Observer>,
    pub(super) times: WorkTimes,
    pub(super) ranks: RankAborter,
    findings: Option<Box<dyn FnOnce() -> String>>,
    spin: Duration,
    /// The number of the question that is being answered.
    question: u64,
    watches: Sender<Watch>,
    watcher: JoinHandle<()>,
}

/// Whether to continue after a request.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    End,
}

impl Server {
    pub(super) fn new(
        segment: Segment,
        socket: Arc<Socket>,
        opened: OpenedDevice,
        spin: Duration,
        observe: Arc<Observer>,
    ) -> io::Result<Self> {
        let reporter = Arc::new(FaultReporter::new(segment.clone()));
        let OpenedDevice { driver, findings } = opened;
        let (watches, asked) = mpsc::channel();
        let watcher = ProgressWatcher {
            segment: segment.clone(),
            driver: driver.clone(),
            reporter: reporter.clone(),
            observe: observe.clone(),
            spin,
        };
        let thread = std::thread::Builder::new().name("kiln watcher".into());
        let watcher = thread.spawn(move || watcher.run(&asked))?;
        let ranks = RankAborter::new(segment.clone(), &driver);
        Ok(Self {
            segment,
            socket,
            driver,
            table: ObjectTable::default(),
            reporter,
            observe,
            times: WorkTimes::default(),
            ranks,
            findings,
            spin,
            question: 0,
            watches,
            watcher,
        })
    }

    /// Serves until the client closes the device.
    pub(super) fn serve(mut self) -> std::result::Result<(), ProtocolViolation> {
        let mut ring = RingReader::new(self.segment.bytes(), COMMANDS);
        let mut message = Vec::new();
        loop {
            self.segment.event_count(Condition::Commands).wait_until(self.spin, None, || ring.is_ready());
            if !ring.pop(&mut message)? {
                continue;
            }
            (self.observe)(WorkerStep::Took);
            self.segment.event_count(Condition::Room).notify();
            if self.handle(&message)? == Next::End {
                break;
            }
        }
        (self.observe)(WorkerStep::Leaving);
        let Self { watches, watcher, findings, socket, .. } = self;
        drop(watches);
        let _ = watcher.join();
        let findings = findings.map_or_else(String::new, |findings| findings());
        let _ = socket.send(&Writer::of(&Farewell { findings }), None);
        Ok(())
    }

    fn handle(&mut self, message: &[u8]) -> std::result::Result<Next, ProtocolViolation> {
        match Request::take(message)? {
            Request::Submit { stream, number, command } => self.submit(stream, number, &command),
            Request::Ask { number, ask } => self.ask(number, &ask),
            Request::Parcel { number, bytes } => {
                self.question = number;
                let parcel = self.parcel(bytes)?;
                let mut reader = Reader::new(&parcel);
                let ask = Ask::take(&mut reader)?;
                reader.end()?;
                self.ask(number, &ask);
            }
            Request::WatchStream { stream, number } => {
                if let Some(stream) = self.table.streams.get(&stream) {
                    let _ = self.watches.send(Watch::Stream { stream: stream.clone(), number });
                }
            }
            Request::WatchEvent { event, ticket } => {
                if let Some(event) = self.table.events.get(&event) {
                    let _ = self.watches.send(Watch::Event { event: event.clone(), ticket });
                }
            }
            Request::NumberWork { stream, number } => {
                self.times.number(stream, number, self.driver.info().kind);
            }
            Request::Examine { number } => drop(self.watches.send(Watch::Health { number })),
            Request::Bye => return Ok(Next::End),
            request => {
                let done = self.carry_out(&request);
                if let Err(error) = done {
                    self.reporter.report_if_lost(&error);
                }
            }
        }
        (self.observe)(WorkerStep::Did);
        Ok(Next::Go)
    }

    /// Carries out a request that has no answer.
    fn carry_out(&mut self, request: &Request<'_>) -> Result<()> {
        match *request {
            Request::CreateStream { id, cell, priority, start } => {
                let made = self.driver.create_stream(StreamRequest::New { priority })?;
                let (segment, driver) = (self.segment.clone(), self.driver.clone());
                let named = (id, cell, start);
                let entry = StreamEntry::new(made, named, segment, driver, self.reporter.clone());
                self.table.streams.insert(id, entry);
                Ok(())
            }
            Request::CreateEvent { id, cell, timed } => {
                let request = if timed { EventRequest::Timed } else { EventRequest::Plain };
                let made = self.driver.create_event(request)?;
                let (segment, driver) = (self.segment.clone(), self.driver.clone());
                let entry = EventEntry { id: made, cell, segment, driver, last: std::sync::Mutex::new(0) };
                self.table.events.insert(id, Arc::new(entry));
                Ok(())
            }
            Request::ResumeStream { id, start } => {
                let stream = find(&self.table.streams, id, "create_stream")?;
                *stream.numbers() = SubmissionNumbers::new(start);
                Ok(())
            }
            Request::Destroy { object, id } => {
                if object == WireObject::Module {
                    self.ranks.unloaded(id);
                }
                self.table.destroy(&self.driver, object, id)
            }
            Request::BeginPart { id, part } => {
                let made = self.driver.allocate(MemoryRequest::Part(self.table.part(&part)?))?;
                self.table.memory.insert(id, made.id);
                Ok(())
            }
            Request::Free { memory, stream } => {
                let id = *find(&self.table.memory, memory, "free")?;
                let find_stream = |stream| find(&self.table.streams, stream, "free").map(|entry| entry.id);
                self.driver.free(id, stream.map(find_stream).transpose()?)?;
                self.table.memory.remove(&memory);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Queues a command; if the driver refuses it, the client is told later.
    fn submit(&mut self, stream: u64, number: u64, command: &WireCommand<'_>) {
        const CALL: &str = "submit";
        let Ok(entry) = find(&self.table.streams, stream, CALL).cloned() else {
            let error = super::object_table::unknown(CALL, stream);
            return self.reporter.late(stream, number, &error);
        };
        let submitted = match command {
            WireCommand::Signal { event, ticket } => self.signal(&entry, *event, *ticket),
            command => declared(command).and_then(|declared| {
                let command = self.table.command(command, declared.as_deref())?;
                self.times.around(stream, || self.driver.submit(entry.id, &command))
            }),
        };
        match submitted {
            Ok(taken) => entry.numbers().take(taken.0),
            Err(error) if error.is_sticky() => self.reporter.report_if_lost(&error),
            Err(error) => {
                entry.numbers().refuse();
                self.reporter.late(stream, number, &error);
            }
        }
    }

    fn signal(&self, stream: &StreamEntry, event: u64, ticket: u64) -> Result<kiln_driver::Submission> {
        let event = find(&self.table.events, event, "submit")?;
        let mut last = event.last();
        let submitted = self.driver.submit(stream.id, &kiln_driver::Command::Signal(event.id))?;
        *last = ticket;
        Ok(submitted)
    }

    fn ask(&mut self, number: u64, ask: &Ask<'_>) {
        self.question = number;
        let (answer, descriptor) = self.answer(ask);
        (self.observe)(WorkerStep::Did);
        if let Some(descriptor) = descriptor {
            use std::os::fd::AsFd;
            // If it cannot be sent, the client does not receive it and treats that as a protocol violation.
            let _ = self.socket.send(&number.to_le_bytes(), Some(descriptor.as_fd()));
        }
        self.segment.reply(number, &answer);
        (self.observe)(WorkerStep::Answered);
    }

    /// The next descriptor that came through the socket for the question that is being answered. Descriptors of earlier questions, which failed
    /// before they needed them, are dropped.
    pub(super) fn descriptor(&self) -> std::result::Result<std::os::fd::OwnedFd, ProtocolViolation> {
        let missing = || ProtocolViolation::new("a descriptor that was not sent");
        loop {
            let received = self.socket.receive(DESCRIPTOR_LIMIT).map_err(|_| missing())?;
            if received.bytes == self.question.to_le_bytes() {
                return received.descriptor.ok_or_else(missing);
            }
        }
    }

    fn parcel(&self, bytes: u64) -> std::result::Result<Vec<u8>, ProtocolViolation> {
        let file = MemoryFile::adopt(self.descriptor()?, bytes);
        let parcel = file.and_then(|file| file.read());
        parcel.map_err(|_| ProtocolViolation::new("a parcel that cannot be read"))
    }
}
