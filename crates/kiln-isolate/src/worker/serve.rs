//! The loop of a worker: a message out of the ring, what it asks for, the next.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use kiln_driver::{EventRequest, Result, StreamRequest};

use super::mirror::{EventEntry, Mirror, StreamEntry, find};
use super::numbering::Numbering;
use super::reporter::Reporter;
use super::watcher::{Watch, Watcher};
use super::{Observer, SharedDriver, Step};
use crate::area::{Area, COMMANDS, Sleep};
use crate::backend::Opened;
use crate::ring::RingReader;
use crate::shared_file::SharedFile;
use crate::socket::Socket;
use crate::violation::Violation;
use crate::wire::{Ask, Farewell, Reader, Request, WireCommand, Writer};

/// A descriptor was sent before the message that needs it, so it does not take long.
const DESCRIPTOR_LIMIT: Duration = Duration::from_secs(5);

/// A worker at work.
pub(super) struct Server {
    pub(super) area: Area,
    pub(super) socket: Arc<Socket>,
    pub(super) driver: SharedDriver,
    pub(super) mirror: Mirror,
    pub(super) reporter: Arc<Reporter>,
    pub(super) observe: Arc<Observer>,
    findings: Option<Box<dyn FnOnce() -> String>>,
    spin: Duration,
    /// The question that is being answered.
    question: u64,
    watches: Sender<Watch>,
    watcher: JoinHandle<()>,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    End,
}

impl Server {
    pub(super) fn new(
        area: Area,
        socket: Arc<Socket>,
        opened: Opened,
        spin: Duration,
        observe: Arc<Observer>,
    ) -> io::Result<Self> {
        let reporter = Arc::new(Reporter::new(area.clone()));
        let Opened { driver, findings } = opened;
        let (watches, asked) = mpsc::channel();
        let watcher = Watcher {
            area: area.clone(),
            driver: driver.clone(),
            reporter: reporter.clone(),
            observe: observe.clone(),
            spin,
        };
        let thread = std::thread::Builder::new().name("kiln watcher".into());
        let watcher = thread.spawn(move || watcher.run(&asked))?;
        Ok(Self {
            area,
            socket,
            driver,
            mirror: Mirror::default(),
            reporter,
            observe,
            findings,
            spin,
            question: 0,
            watches,
            watcher,
        })
    }

    /// Serves until the client says goodbye.
    pub(super) fn serve(mut self) -> std::result::Result<(), Violation> {
        let mut ring = RingReader::new(self.area.bytes(), COMMANDS);
        let mut message = Vec::new();
        loop {
            self.area.bell(Sleep::Commands).sleep_until(self.spin, None, || ring.is_ready());
            if !ring.pop(&mut message)? {
                continue;
            }
            (self.observe)(Step::Took);
            self.area.bell(Sleep::Room).ring();
            if self.handle(&message)? == Next::End {
                break;
            }
        }
        (self.observe)(Step::Leaving);
        let Self { watches, watcher, findings, socket, .. } = self;
        drop(watches);
        let _ = watcher.join();
        let findings = findings.map_or_else(String::new, |findings| findings());
        let _ = socket.send(&Writer::of(&Farewell { findings }), None);
        Ok(())
    }

    fn handle(&mut self, message: &[u8]) -> std::result::Result<Next, Violation> {
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
                if let Some(stream) = self.mirror.streams.get(&stream) {
                    let _ = self.watches.send(Watch::Stream { stream: stream.clone(), number });
                }
            }
            Request::WatchEvent { event, ticket } => {
                if let Some(event) = self.mirror.events.get(&event) {
                    let _ = self.watches.send(Watch::Event { event: event.clone(), ticket });
                }
            }
            Request::Examine { number } => drop(self.watches.send(Watch::Health { number })),
            Request::Bye => return Ok(Next::End),
            request => {
                let done = self.arrange(&request);
                if let Err(error) = done {
                    self.reporter.examine(&error);
                }
            }
        }
        (self.observe)(Step::Did);
        Ok(Next::Go)
    }

    /// What is done without an answer.
    fn arrange(&mut self, request: &Request<'_>) -> Result<()> {
        match *request {
            Request::CreateStream { id, cell, priority, start } => {
                let made = self.driver.create_stream(StreamRequest::New { priority })?;
                let (area, driver) = (self.area.clone(), self.driver.clone());
                let named = (id, cell, start);
                let entry = StreamEntry::new(made, named, area, driver, self.reporter.clone());
                self.mirror.streams.insert(id, entry);
                Ok(())
            }
            Request::CreateEvent { id, cell, timed } => {
                let request = if timed { EventRequest::Timed } else { EventRequest::Plain };
                let made = self.driver.create_event(request)?;
                let (area, driver) = (self.area.clone(), self.driver.clone());
                let entry = EventEntry { id: made, cell, area, driver, last: std::sync::Mutex::new(0) };
                self.mirror.events.insert(id, Arc::new(entry));
                Ok(())
            }
            Request::ResumeStream { id, start } => {
                let stream = find(&self.mirror.streams, id, "create_stream")?;
                *stream.numbering() = Numbering::new(start);
                Ok(())
            }
            Request::Destroy { object, id } => self.mirror.destroy(&self.driver, object, id),
            Request::Free { memory, stream } => {
                let id = *find(&self.mirror.memory, memory, "free")?;
                let find_stream = |stream| find(&self.mirror.streams, stream, "free").map(|entry| entry.id);
                self.driver.free(id, stream.map(find_stream).transpose()?)?;
                self.mirror.memory.remove(&memory);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Queues a command; if the driver does not take it, the client is told later.
    fn submit(&mut self, stream: u64, number: u64, command: &WireCommand<'_>) {
        const CALL: &str = "submit";
        let Ok(entry) = find(&self.mirror.streams, stream, CALL).cloned() else {
            let error = super::mirror::unknown(CALL, stream);
            return self.reporter.late(stream, number, &error);
        };
        let submitted = match command {
            WireCommand::Signal { event, ticket } => self.signal(&entry, *event, *ticket),
            command => {
                self.mirror.command(command).and_then(|command| self.driver.submit(entry.id, &command))
            }
        };
        match submitted {
            Ok(taken) => entry.numbering().take(taken.0),
            Err(error) if error.is_sticky() => self.reporter.examine(&error),
            Err(error) => {
                entry.numbering().refuse();
                self.reporter.late(stream, number, &error);
            }
        }
    }

    fn signal(&self, stream: &StreamEntry, event: u64, ticket: u64) -> Result<kiln_driver::Submission> {
        let event = find(&self.mirror.events, event, "submit")?;
        let mut last = event.last();
        let submitted = self.driver.submit(stream.id, &kiln_driver::Command::Signal(event.id))?;
        *last = ticket;
        Ok(submitted)
    }

    fn ask(&mut self, number: u64, ask: &Ask<'_>) {
        self.question = number;
        let (answer, descriptor) = self.answer(ask);
        (self.observe)(Step::Did);
        if let Some(descriptor) = descriptor {
            use std::os::fd::AsFd;
            // If it cannot be sent the client finds none, and gives us up.
            let _ = self.socket.send(&number.to_le_bytes(), Some(descriptor.as_fd()));
        }
        self.area.reply(number, &answer);
        (self.observe)(Step::Answered);
    }

    /// The next descriptor that came through the socket for the question that is being answered. Those of questions
    /// that failed before they needed them are left behind.
    pub(super) fn descriptor(&self) -> std::result::Result<std::os::fd::OwnedFd, Violation> {
        let missing = || Violation::new("a descriptor that did not come");
        loop {
            let received = self.socket.receive(DESCRIPTOR_LIMIT).map_err(|_| missing())?;
            if received.bytes == self.question.to_le_bytes() {
                return received.descriptor.ok_or_else(missing);
            }
        }
    }

    fn parcel(&self, bytes: u64) -> std::result::Result<Vec<u8>, Violation> {
        let file = SharedFile::adopt(self.descriptor()?, bytes);
        let parcel = file.and_then(|file| file.read());
        parcel.map_err(|_| Violation::new("a parcel that cannot be opened"))
    }
}
