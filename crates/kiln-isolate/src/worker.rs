//! The worker process: it holds the device.
//!
//! A worker is the same program started again. The call in `main` recognises it by an environment variable and never returns: the
//! process performs the handshake over the socket it has as its standard input, opens the device, and serves requests from the ring until the
//! client closes the device or ends.
//!
//! - [`server`]: the thread that takes requests out of the ring; [`questions`] answers those that have an answer, [`commands`] turns
//!   commands back into those of the driver interface, [`object_table`] maps the client's ids to the driver's handles.
//! - [`watcher`]: the thread that queries streams and events for the client, and [`reporter`], which tells it of faults.
//! - [`submission_numbers`]: the client's numbers of submissions, and the driver's.
//! - [`rank_aborter`]: the thread that ends ranks of communicators while the server waits inside of a library.
//! - [`work_times`]: when work ran, where a recording asks for that.
//! - [`opened_device`]: the kinds of devices a worker can open.

mod command_decoder;
mod completion_poller;
mod fault_reporter;
mod object_table;
pub(crate) mod opened_device;
mod rank_aborter;
mod request_handlers;
mod server;
mod submission_numbers;
mod work_times;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kiln_driver::Driver;
use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use self::opened_device::{OpenFailure, OpenedDevice, built_in};
use self::server::Server;
use crate::protocol::device_spec::DeviceSpec;
use crate::protocol::environment::{self, PARENT_VARIABLE};
use crate::protocol::memory_file::MemoryFile;
use crate::protocol::segment::{SEGMENT_BYTES, Segment};
use crate::protocol::socket::Socket;
use crate::protocol::wire::{Hello, Reader, Take, Welcome, Writer};

/// How long a worker waits for the client's part of the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

/// Makes a program usable as a worker. Call it first in `main`.
///
/// In a process that was started as a worker it serves the client and never returns. In any other it records that it was called and returns at
/// once. Without this call no worker is started, because the program would run a second time.
///
/// ```
/// // First in main:
/// kiln_isolate::worker_entry();
/// // The program.
/// ```
pub fn worker_entry() {
    Worker::new().enter();
}

type Open = dyn Fn(&[u8]) -> Result<OpenedDevice, OpenFailure>;

/// A worker with kinds of devices that the program adds, or one that a test observes.
///
/// ```no_run
/// use kiln_isolate::{OpenedDevice, Worker};
///
/// Worker::new()
///     .backend("mine", |_argument| Ok(OpenedDevice::new(kiln_sim::SimDevice::single(7))))
///     .enter();
/// ```
pub struct Worker {
    backends: Vec<(String, Box<Open>)>,
    observer: Option<Observer>,
}

/// A function that is called at each step of a worker.
pub(crate) type Observer = Box<dyn Fn(WorkerStep) + Send + Sync>;

/// A step in the life of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum WorkerStep {
    /// The process began.
    Begun,
    /// It has received the client's part of the handshake.
    Greeted,
    /// The device is open; the client was not told yet.
    Opened,
    /// The client was told.
    Welcomed,
    /// A request was taken out of the ring.
    Took,
    /// The request was carried out; it was not answered yet.
    Did,
    /// The request was answered.
    Answered,
    /// Progress was found and not published yet.
    Found,
    /// The client closed the device.
    Leaving,
}

impl Default for Worker {
    fn default() -> Self {
        Self::new()
    }
}

impl Worker {
    /// A worker that opens the kinds of devices this crate was built with.
    pub fn new() -> Self {
        let none = Self { backends: Vec::new(), observer: None };
        built_in().into_iter().fold(none, |worker, (name, open)| worker.backend(name, open))
    }

    /// Adds a kind of device. A client names it with [`DeviceSpec::custom`].
    #[must_use]
    pub fn backend(
        mut self,
        name: impl Into<String>,
        open: impl Fn(&[u8]) -> Result<OpenedDevice, OpenFailure> + 'static,
    ) -> Self {
        self.backends.push((name.into(), Box::new(open)));
        self
    }

    /// Calls a function at each step, on the thread that takes it. A test may end the process there.
    #[must_use]
    pub fn observe(self, observer: impl Fn(WorkerStep) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Serves and never returns if this process is a worker; otherwise returns at once.
    pub fn enter(self) {
        if !environment::is_worker() {
            // A test that calls this on its own thread does not make `main` the start of a worker.
            if rustix::thread::gettid() == getpid() {
                environment::record_entry();
            }
            return;
        }
        let code = match self.run() {
            Ok(()) => 0,
            Err(stop) => stop.code(),
        };
        std::process::exit(code);
    }

    fn run(self) -> Result<(), Stop> {
        die_with_the_client()?;
        let observe = self.observer.unwrap_or_else(|| Box::new(|_| {}));
        observe(WorkerStep::Begun);
        let socket = Arc::new(inherited_socket()?);
        let greeting = socket.receive(HANDSHAKE_LIMIT).map_err(|_| Stop::NoHandshake)?;
        let mut reader = Reader::new(&greeting.bytes);
        let hello = Hello::take(&mut reader).and_then(|hello| reader.end().map(|()| hello));
        let hello = hello.map_err(|_| Stop::Violation)?;
        let file = greeting.descriptor.ok_or(Stop::NoHandshake)?;
        let file = MemoryFile::adopt(file, SEGMENT_BYTES).map_err(|_| Stop::NoMemory)?;
        let segment = Segment::map(&file).map_err(|_| Stop::NoMemory)?;
        drop(file);
        watch_client(socket.clone())?;
        observe(WorkerStep::Greeted);
        let opened = match open(&self.backends, &hello.device) {
            Ok(opened) => opened,
            Err(OpenFailure { absent, text }) => {
                let _ = socket.send(&Writer::of(&Welcome::Refused { absent, text }), None);
                return Err(Stop::NoDevice);
            }
        };
        observe(WorkerStep::Opened);
        let info = opened.driver.info().clone();
        let welcome = Writer::of(&Welcome::Ready(Box::new(info)));
        let (observe, spin) = (Arc::new(observe), Duration::from_nanos(hello.spin_ns));
        // A worker has everything it needs from the system before it says that it is ready.
        let server = Server::new(segment, socket.clone(), opened, spin, observe.clone());
        let server = server.map_err(|_| Stop::NoMemory)?;
        socket.send(&welcome, None).map_err(|_| Stop::ClientGone)?;
        observe(WorkerStep::Welcomed);
        server.serve().map_err(|_| Stop::Violation)
    }
}

/// Why a worker exits before the client closes the device, as its exit status.
#[derive(Debug)]
enum Stop {
    NoHandshake,
    NoMemory,
    NoDevice,
    ClientGone,
    Violation,
}

impl Stop {
    fn code(&self) -> i32 {
        match self {
            Self::NoHandshake => 80,
            Self::NoMemory => 81,
            Self::NoDevice => 82,
            Self::ClientGone => 83,
            Self::Violation => 84,
        }
    }
}

fn open(backends: &[(String, Box<Open>)], device: &DeviceSpec) -> Result<OpenedDevice, OpenFailure> {
    let found = backends.iter().rev().find(|(name, _)| name == device.name());
    let Some((_, open)) = found else {
        let known: Vec<&str> = backends.iter().map(|(name, _)| name.as_str()).collect();
        let text = format!("this worker opens no `{}`; it opens {}", device.name(), known.join(", "));
        return Err(OpenFailure::broken(text));
    };
    open(device.argument())
}

/// Takes the socket that the client passed as standard input, which becomes `/dev/null`.
fn inherited_socket() -> Result<Socket, Stop> {
    let socket = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).map_err(|_| Stop::NoHandshake)?;
    let nothing = std::fs::File::open("/dev/null").map_err(|_| Stop::NoHandshake)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|_| Stop::NoHandshake)?;
    Ok(Socket::from_descriptor(socket))
}

/// Has the system kill this process when the client's thread that started it ends, which lives as long as the client needs a worker.
fn die_with_the_client() -> Result<(), Stop> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|_| Stop::ClientGone)?;
    // If that thread has ended before this call, another process is the parent already.
    let expected = std::env::var(PARENT_VARIABLE).ok().and_then(|text| text.parse().ok());
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
    if expected.is_some() && parent != expected { Err(Stop::ClientGone) } else { Ok(()) }
}

/// A second way to notice that the client has ended: its end of the socket closes. The process ends then, even while other threads are
/// inside a driver call.
fn watch_client(socket: Arc<Socket>) -> Result<(), Stop> {
    let watch = move || {
        while !socket.is_closed(None) {}
        end_now();
    };
    std::thread::Builder::new()
        .name("kiln client watch".into())
        .spawn(watch)
        .map(drop)
        .map_err(|_| Stop::NoMemory)
}

/// Ends this process without running any more of its code.
fn end_now() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort();
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.backends.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "a worker for {}", names.join(", "))
    }
}

/// The driver, as every part of a worker holds it.
pub(crate) type SharedDriver = Arc<dyn Driver>;
