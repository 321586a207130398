//! The process that holds the device.
//!
//! A worker is the same program started again. The line in `main` recognises it by a variable in its environment, and
//! never returns: the process greets its client over the socket it has as its standard input, opens the device, and
//! does what the ring says until it is told to end, or the client is gone.

mod answer;
mod launch;
mod mirror;
mod numbering;
mod reporter;
mod serve;
mod watcher;

pub(crate) use self::answer::{IMAGE_CUBIN, IMAGE_HOST_KERNELS, IMAGE_PTX, IMAGE_PTX_TO_KEEP};

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kiln_driver::Driver;
use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use self::serve::Server;
use crate::area::{AREA_BYTES, Area};
use crate::backend::{self, OpenFailure, Opened};
use crate::launcher::{PARENT_VARIABLE, WORKER_VARIABLE};
use crate::shared_file::SharedFile;
use crate::socket::Socket;
use crate::wire::{Hello, Reader, Take, Welcome, Writer};

/// How long a worker waits to be greeted.
const GREETING_LIMIT: Duration = Duration::from_secs(30);

/// Whether this process passed the line in `main` without being a worker.
static ENTRY_PASSED: AtomicBool = AtomicBool::new(false);

/// The one line in `main` of a program whose devices may live in worker processes.
///
/// In a process that was started as a worker it serves and never returns. In any other it notes that it was called
/// and returns at once; without it no worker is started, because the program would only start itself again.
///
/// ```
/// // First in main:
/// kiln_isolate::worker_entry();
/// // The program.
/// ```
pub fn worker_entry() {
    Worker::new().enter();
}

/// Whether [`worker_entry`] was passed in this process.
pub(crate) fn entry_passed() -> bool {
    ENTRY_PASSED.load(Ordering::Acquire)
}

type Open = dyn Fn(&[u8]) -> Result<Opened, OpenFailure>;

/// A worker with devices of one's own kind, or one that is watched, for tests.
///
/// ```no_run
/// use kiln_isolate::{Opened, Worker};
///
/// Worker::new()
///     .backend("mine", |_argument| Ok(Opened::new(kiln_sim::SimDevice::single(7))))
///     .enter();
/// ```
pub struct Worker {
    backends: Vec<(String, Box<Open>)>,
    observer: Option<Observer>,
}

/// Told of each step a worker takes.
pub(crate) type Observer = Box<dyn Fn(Step) + Send + Sync>;

/// Where a worker is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The process began.
    Begun,
    /// The client's greeting was read.
    Greeted,
    /// The device is open; the client was not told yet.
    Opened,
    /// The client was told.
    Welcomed,
    /// A message was taken out of the ring.
    Took,
    /// What it asked for was done; it was not answered yet.
    Did,
    /// It was answered.
    Answered,
    /// Progress was found and not published yet.
    Found,
    /// The client said goodbye.
    Leaving,
}

impl Default for Worker {
    fn default() -> Self {
        Self::new()
    }
}

impl Worker {
    /// A worker that opens what this crate was built with.
    pub fn new() -> Self {
        let none = Self { backends: Vec::new(), observer: None };
        backend::built_in().into_iter().fold(none, |worker, (name, open)| worker.backend(name, open))
    }

    /// A kind of device of one's own, by the name [`Backend::custom`](crate::Backend::custom) uses.
    #[must_use]
    pub fn backend(
        mut self,
        name: impl Into<String>,
        open: impl Fn(&[u8]) -> Result<Opened, OpenFailure> + 'static,
    ) -> Self {
        self.backends.push((name.into(), Box::new(open)));
        self
    }

    /// Calls a function at each step, on the thread that takes it. A test may end the process there.
    #[must_use]
    pub fn observe(self, observer: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Serves and never returns if this process is a worker; otherwise returns at once.
    pub fn enter(self) {
        if std::env::var_os(WORKER_VARIABLE).is_none() {
            // A test that calls this on its own thread has not made `main` a worker's.
            if rustix::thread::gettid() == getpid() {
                ENTRY_PASSED.store(true, Ordering::Release);
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
        observe(Step::Begun);
        let socket = Arc::new(inherited_socket()?);
        let greeting = socket.receive(GREETING_LIMIT).map_err(|_| Stop::NoGreeting)?;
        let mut reader = Reader::new(&greeting.bytes);
        let hello = Hello::take(&mut reader).and_then(|hello| reader.end().map(|()| hello));
        let hello = hello.map_err(|_| Stop::Violation)?;
        let file = greeting.descriptor.ok_or(Stop::NoGreeting)?;
        let file = SharedFile::adopt(file, AREA_BYTES).map_err(|_| Stop::NoMemory)?;
        let area = Area::map(&file).map_err(|_| Stop::NoMemory)?;
        drop(file);
        watch_client(socket.clone())?;
        observe(Step::Greeted);
        let opened = match open(&self.backends, &hello) {
            Ok(opened) => opened,
            Err(OpenFailure { absent, text }) => {
                let _ = socket.send(&Writer::of(&Welcome::Refused { absent, text }), None);
                return Err(Stop::NoDevice);
            }
        };
        observe(Step::Opened);
        let info = opened.driver.info().clone();
        let welcome = Writer::of(&Welcome::Ready(Box::new(info)));
        let (observe, spin) = (Arc::new(observe), Duration::from_nanos(hello.spin_ns));
        // All a worker needs of the system it has before it says that it is ready.
        let server = Server::new(area, socket.clone(), opened, spin, observe.clone());
        let server = server.map_err(|_| Stop::NoMemory)?;
        socket.send(&welcome, None).map_err(|_| Stop::ClientGone)?;
        observe(Step::Welcomed);
        server.serve().map_err(|_| Stop::Violation)
    }
}

/// Why a worker ended before it was told to; the number is the exit status.
#[derive(Debug)]
enum Stop {
    NoGreeting,
    NoMemory,
    NoDevice,
    ClientGone,
    Violation,
}

impl Stop {
    fn code(&self) -> i32 {
        match self {
            Self::NoGreeting => 80,
            Self::NoMemory => 81,
            Self::NoDevice => 82,
            Self::ClientGone => 83,
            Self::Violation => 84,
        }
    }
}

fn open(backends: &[(String, Box<Open>)], hello: &Hello) -> Result<Opened, OpenFailure> {
    let found = backends.iter().rev().find(|(name, _)| *name == hello.backend);
    let Some((_, open)) = found else {
        let known: Vec<&str> = backends.iter().map(|(name, _)| name.as_str()).collect();
        let text = format!("this worker opens no `{}`; it opens {}", hello.backend, known.join(", "));
        return Err(OpenFailure::broken(text));
    };
    open(&hello.argument)
}

/// The socket the client gave us as our standard input, which is nothing from then on.
fn inherited_socket() -> Result<Socket, Stop> {
    let socket = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).map_err(|_| Stop::NoGreeting)?;
    let nothing = std::fs::File::open("/dev/null").map_err(|_| Stop::NoGreeting)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|_| Stop::NoGreeting)?;
    Ok(Socket::from_descriptor(socket))
}

/// The system ends us when the thread that started us ends, which lives as long as the client needs us.
fn die_with_the_client() -> Result<(), Stop> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|_| Stop::ClientGone)?;
    // It may have ended before we asked for that; then somebody else is our parent already.
    let expected = std::env::var(PARENT_VARIABLE).ok().and_then(|text| text.parse().ok());
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
    if expected.is_some() && parent != expected { Err(Stop::ClientGone) } else { Ok(()) }
}

/// A second way to notice that the client is gone: its end of the socket closes. Whatever the other threads are doing,
/// inside a driver perhaps, the process ends.
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

/// Ends this process without running anything more of it.
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

/// What every part of a worker needs.
pub(crate) type SharedDriver = Arc<dyn Driver>;
