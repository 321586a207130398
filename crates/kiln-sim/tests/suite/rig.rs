//! A device with streams and a few kernels, and short words for using them.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kiln_driver::{
    Access, Command, DeviceMemory, DevicePlace, Driver, DriverExt, EventId, EventRequest, FunctionId,
    HostBlock, Image, LaunchCommand, MemoryRequest, ModuleId, Object, Result, StreamId, StreamRequest,
    Submission, Vouched,
};
use kiln_sim::{HostKernel, KernelFault, KernelLibrary, Machine, MachineConfig, SimDevice};

/// What kernels the rig can launch.
#[derive(Clone, Copy)]
pub(crate) enum Kernel {
    /// Writes a byte to each of n bytes: pointer, n, byte.
    Write,
    /// Reads n bytes: pointer, n.
    Read,
    /// Adds one to each of n bytes: pointer, n.
    Bump,
    /// Adds one to a word atomically: pointer.
    Count,
    /// Takes so many nanoseconds: n.
    Spin,
    /// Says it reads, and writes one byte: pointer.
    Liar,
    /// Loads a word: pointer.
    Word,
    /// Panics.
    Panic,
    /// Does not end.
    Endless,
}

impl Kernel {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Write, "write"),
        (Self::Read, "read"),
        (Self::Bump, "bump"),
        (Self::Count, "count"),
        (Self::Spin, "spin"),
        (Self::Liar, "liar"),
        (Self::Word, "word"),
        (Self::Panic, "panic"),
        (Self::Endless, "endless"),
    ];
}

pub(crate) fn library() -> KernelLibrary {
    let write = HostKernel::new("write").pointer(Access::Write).value::<u64>().value::<u8>().body(|launch| {
        let bytes = vec![launch.value(2)?; launch.value::<u64>(1)? as usize];
        Ok(launch.memory().write(launch.address(0)?, &bytes)?)
    });
    let read = HostKernel::new("read").pointer(Access::Read).value::<u64>().body(|launch| {
        let mut bytes = vec![0; launch.value::<u64>(1)? as usize];
        Ok(launch.memory().read(launch.address(0)?, &mut bytes)?)
    });
    let bump = HostKernel::new("bump").pointer(Access::ReadWrite).value::<u64>().body(|launch| {
        let (start, mut port) = (launch.address(0)?, launch.port());
        for at in start..start + launch.value::<u64>(1)? {
            let value: u8 = port.load(at)?;
            port.store(at, value.wrapping_add(1))?;
        }
        Ok(())
    });
    let count = HostKernel::new("count").pointer(Access::ReadWrite).body(|launch| {
        launch.port().atomic_u32(launch.address(0)?)?.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let spin = HostKernel::new("spin").value::<u64>().body(|launch| {
        launch.spend(Duration::from_nanos(launch.value(0)?));
        Ok(())
    });
    let liar = HostKernel::new("liar").pointer(Access::Read).body(|launch| {
        launch.port().store(launch.address(0)?, 1u8)?;
        Ok(())
    });
    let word = HostKernel::new("word").pointer(Access::Read).body(|launch| {
        launch.port().load::<u32>(launch.address(0)?)?;
        Ok(())
    });
    let panic = HostKernel::new("panic").body(|_| panic!("a bug in a kernel"));
    let endless = HostKernel::new("endless").body(|_| Err(KernelFault::Hang));
    [write, read, bump, count, spin, liar, word, panic, endless]
        .into_iter()
        .fold(KernelLibrary::new("rig"), KernelLibrary::kernel)
}

pub(crate) fn config(seed: u64) -> MachineConfig {
    MachineConfig::seeded(seed).library(library())
}

pub(crate) struct Rig {
    pub(crate) machine: Machine,
    pub(crate) device: Arc<SimDevice>,
    pub(crate) streams: Vec<StreamId>,
    pub(crate) module: ModuleId,
    functions: Vec<FunctionId>,
    left: RefCell<Vec<Left>>,
}

/// Something to be given back at the end.
enum Left {
    Memory(DeviceMemory),
    Object(Object),
}

impl Rig {
    pub(crate) fn new(machine: &Machine, streams: usize) -> Self {
        Self::on(machine, 0, streams)
    }

    pub(crate) fn seeded(seed: u64, streams: usize) -> Self {
        Self::new(&Machine::new(config(seed)), streams)
    }

    pub(crate) fn on(machine: &Machine, ordinal: u32, streams: usize) -> Self {
        let device = machine.device(ordinal).unwrap();
        let module = device.load(&Image::HostKernels("rig")).unwrap();
        let function = |(_, name): &(Kernel, &str)| device.function(module, name).unwrap().id;
        let functions = Kernel::ALL.iter().map(function).collect();
        let stream = |_| device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let streams = (0..streams).map(stream).collect();
        Self { machine: machine.clone(), device, streams, module, functions, left: RefCell::default() }
    }

    /// A block that is freed when the rig is closed.
    pub(crate) fn block(&self, bytes: u64) -> DeviceMemory {
        let memory = self.direct(bytes);
        self.left.borrow_mut().push(Left::Memory(memory));
        memory
    }

    /// A block that the test frees.
    pub(crate) fn direct(&self, bytes: u64) -> DeviceMemory {
        self.device.allocate(MemoryRequest::Direct { bytes }).unwrap()
    }

    /// Pool memory that the test frees.
    pub(crate) fn pool(&self, stream: usize, bytes: u64) -> DeviceMemory {
        self.device.allocate(MemoryRequest::Pool { bytes, stream: self.streams[stream] }).unwrap()
    }

    pub(crate) fn host(&self, bytes: u64) -> HostBlock {
        let host = self.device.allocate_host(bytes).unwrap();
        self.give_back_later(host.id());
        host
    }

    pub(crate) fn event(&self) -> EventId {
        let event = self.device.create_event(EventRequest::Plain).unwrap();
        self.give_back_later(event);
        event
    }

    pub(crate) fn give_back_later(&self, object: impl Into<Object>) {
        self.left.borrow_mut().push(Left::Object(object.into()));
    }

    pub(crate) fn signal(&self, stream: usize, event: EventId) {
        self.device.submit(self.streams[stream], &Command::Signal(event)).unwrap();
    }

    pub(crate) fn wait(&self, stream: usize, event: EventId) {
        self.device.submit(self.streams[stream], &Command::Wait(event)).unwrap();
    }

    /// Makes a stream wait for what was submitted to another.
    pub(crate) fn order(&self, before: usize, after: usize) {
        self.device.order(self.streams[before], self.event(), self.streams[after]).unwrap();
    }

    pub(crate) fn sync(&self, stream: usize) {
        self.device.synchronize(self.streams[stream]).unwrap();
    }

    /// Packs arguments and launches.
    pub(crate) fn launch(&self, stream: usize, kernel: Kernel, arguments: &[u64]) -> Result<Submission> {
        let packed = pack(kernel, arguments);
        self.device.submit(self.streams[stream], &self.command(kernel, &packed))
    }

    pub(crate) fn command<'a>(&self, kernel: Kernel, arguments: &'a [u8]) -> Command<'a> {
        Command::Launch(LaunchCommand {
            function: self.functions[kernel as usize],
            grid: 1.into(),
            block: 32.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments,
            declared: None,
            // SAFETY: kernels here are host functions that reach memory through checked ports only.
            vouched: unsafe { Vouched::new() },
        })
    }

    pub(crate) fn write(&self, stream: usize, memory: DeviceMemory, value: u8) {
        self.launch(stream, Kernel::Write, &[memory.address.0, memory.bytes, value.into()]).unwrap();
    }

    pub(crate) fn read(&self, stream: usize, memory: DeviceMemory) {
        self.launch(stream, Kernel::Read, &[memory.address.0, memory.bytes]).unwrap();
    }

    pub(crate) fn bump(&self, stream: usize, memory: DeviceMemory) {
        self.launch(stream, Kernel::Bump, &[memory.address.0, memory.bytes]).unwrap();
    }

    pub(crate) fn download(&self, stream: usize, from: impl Into<DevicePlace>, to: &HostBlock) {
        self.device.download(self.streams[stream], from.into(), to, to.len() as u64).unwrap();
    }

    pub(crate) fn upload(&self, stream: usize, from: &HostBlock, to: impl Into<DevicePlace>) {
        self.device.upload(self.streams[stream], from, to.into(), from.len() as u64).unwrap();
    }

    /// Waits for everything and gives everything back that is left.
    pub(crate) fn close(self) {
        let device = &self.device;
        self.streams.iter().for_each(|stream| device.synchronize(*stream).unwrap());
        for left in self.left.into_inner() {
            match left {
                Left::Memory(memory) => device.free(memory.id, None).unwrap(),
                Left::Object(object) => device.destroy(object).unwrap(),
            }
        }
        self.streams.iter().for_each(|stream| device.destroy((*stream).into()).unwrap());
        device.destroy(self.module.into()).unwrap();
    }
}

/// Arguments as the kernel's parameters lie: 8 bytes each, the byte of `Write` last.
pub(crate) fn pack(kernel: Kernel, arguments: &[u64]) -> Vec<u8> {
    let mut packed: Vec<u8> = arguments.iter().flat_map(|argument| argument.to_le_bytes()).collect();
    if let Kernel::Write = kernel {
        packed.truncate(17);
    }
    packed
}

pub(crate) fn bytes_of(host: &HostBlock) -> Vec<u8> {
    let mut bytes = vec![0; host.len()];
    assert!(host.read(0, &mut bytes));
    bytes
}
