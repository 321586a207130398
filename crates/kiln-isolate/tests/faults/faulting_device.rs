//! A device with known memory contents, kernels that fault in every way, and the recovery from each fault.

use std::io::Write;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kiln_driver::{
    Capability, Code, Command, DeviceAddress, DeviceMemory, DevicePlace, Driver, DriverExt, Function,
    HostBlock, Image, LaunchCommand, MemoryRequest, ModuleId, PageRequest, Place, Protection, Reservation,
    ReserveRequest, Result, StreamId, StreamRequest, Vouched,
};
use kiln_isolate::{
    Checksum, ChecksumRequest, DeviceSpec, IsolatedDevice, IsolationConfig, OpenFailure, RestartPolicy,
    Takeover, Worker, WorkerEntry, WorkerEvent,
};
use kiln_sim::{HostKernel, KernelFault, KernelLibrary, LaunchContext, Machine, MachineConfig, PtxEngine};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// Blocks of memory, one granule each; kernels are told to write into the first.
pub(crate) const BLOCKS: u64 = 4;
/// The limit of the watchdog.
const WATCHDOG: Duration = Duration::from_secs(1);
/// What kernels write.
pub(crate) const WRITTEN: [u8; 4] = 57005_u32.to_le_bytes();

/// The kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Simulated,
    Cuda,
}

/// The body of the helper test that is the worker process.
pub(crate) fn worker() {
    let illegal = |_: &LaunchContext<'_>| {
        Err(KernelFault::Stopped { code: Code::ILLEGAL_INSTRUCTION, detail: "no such instruction".into() })
    };
    let open = move |_: &[u8]| {
        let kernel = HostKernel::new("illegal_instruction").pointer(kiln_driver::Access::Write).body(illegal);
        let library = KernelLibrary::new("illegal").kernel(kernel);
        let engine = PtxEngine::default().step_limit(50_000);
        let config = MachineConfig::seeded(3).engine(Arc::new(engine)).library(library);
        let device = Machine::new(config).device(0);
        device
            .map(|device| kiln_isolate::OpenedDevice::new(device))
            .map_err(|error| OpenFailure::broken(error.to_string()))
    };
    Worker::new().backend("faulting_device", open).enter();
}

/// How a worker is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultKind {
    IllegalAddress,
    Misaligned,
    Trap,
    Assert,
    IllegalInstruction,
    EndlessKernel,
    Killed,
}

impl FaultKind {
    pub(crate) const ALL: [Self; 7] = [
        Self::IllegalAddress,
        Self::Misaligned,
        Self::Trap,
        Self::Assert,
        Self::IllegalInstruction,
        Self::EndlessKernel,
        Self::Killed,
    ];

    fn kernel(self) -> &'static str {
        match self {
            Self::IllegalAddress => "illegal_address",
            Self::Misaligned => "misaligned",
            Self::Trap => "trapping",
            Self::Assert => "asserting",
            Self::IllegalInstruction => "illegal_instruction",
            Self::EndlessKernel | Self::Killed => "endless",
        }
    }

    /// The codes that the driver may report for it.
    pub(crate) fn codes(self) -> &'static [Code] {
        match self {
            Self::IllegalAddress => &[Code::ILLEGAL_ADDRESS],
            Self::Misaligned => &[Code::MISALIGNED_ADDRESS],
            Self::Trap => &[Code::LAUNCH_FAILED, Code::ILLEGAL_INSTRUCTION],
            Self::Assert => &[Code::ASSERT],
            Self::IllegalInstruction => &[Code::ILLEGAL_INSTRUCTION, Code::LAUNCH_FAILED],
            Self::EndlessKernel => &[Code::LAUNCH_TIMEOUT],
            Self::Killed => &[Code::CONTEXT_IS_DESTROYED],
        }
    }

    /// Whether it can be provoked on a device. An illegal instruction needs machine code, which exists for one architecture.
    pub(crate) fn is_possible(self, target: Target, capability: Capability) -> bool {
        self != Self::IllegalInstruction || target == Target::Simulated || capability.major == 9
    }
}

/// The device and its objects.
pub(crate) struct FaultingDevice {
    pub(crate) device: Arc<IsolatedDevice>,
    target: Target,
    told: Receiver<WorkerEvent>,
    process: u32,
    pub(crate) stream: StreamId,
    pub(crate) range: Reservation,
    pub(crate) granule: u64,
    sums: Reservation,
    host: HostBlock,
    checksum: Checksum,
    kernels: Vec<(FaultKind, Function)>,
    good: Function,
    /// How many kernels a standby must have.
    kernel_count: usize,
    /// The process of the standby that was ready last.
    standby_process: u32,
    /// The standby that the last takeover may have used: what is still said of it is old.
    used_standby: u32,
    /// Memory that is lost with the worker.
    pub(crate) direct: DeviceMemory,
    pub(crate) contents: Vec<Vec<u8>>,
}

/// What happened after a fault.
pub(crate) struct Recovery {
    pub(crate) code: Option<Code>,
    pub(crate) detected: Duration,
    pub(crate) takeover: Takeover,
    /// From the moment the loss was noticed until a kernel ran again.
    pub(crate) recovered: Duration,
}

impl FaultingDevice {
    /// Opens the device, makes its objects, and waits until the standby has them; `None` if there is no such device.
    pub(crate) fn open(target: Target, standby: bool) -> Option<Self> {
        let backend = match target {
            Target::Simulated => DeviceSpec::custom("faulting_device", []),
            Target::Cuda => DeviceSpec::cuda(0),
        };
        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let policy = RestartPolicy { limit: u32::MAX, pause: Duration::ZERO, ..RestartPolicy::default() };
        let config = IsolationConfig::new(backend).entry(WorkerEntry::Test("worker".into())).restarts(policy);
        let config = config.standby(standby).watchdog(WATCHDOG);
        let config = config.observe(move |news| drop(tell.lock().unwrap().send(news.clone())));
        let device = match IsolatedDevice::open(config) {
            Ok(device) => device,
            Err(error) if error.is_absence() && target == Target::Cuda => return None,
            Err(error) => panic!("{error}"),
        };
        let granule = device.info().limits.page_granularity_bytes;
        let range = mapped(&device, BLOCKS * granule, granule);
        let sums = mapped(&device, granule, granule);
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let host = device.allocate_host(granule).unwrap();
        let checksum = Checksum::load(&*device).unwrap();
        let direct = device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
        let contents = (0..BLOCKS).map(|block| noise(block + 1, granule as usize)).collect();
        let module = device.load(&Image::Ptx(include_str!("faults.ptx"))).unwrap();
        let good = device.function(module, "store_word").unwrap();
        let kernels = kernels(&device, target, module);
        let mut subject = Self {
            // Two kinds of faults share one kernel; the checksum and the correct kernel are counted as well.
            kernel_count: kernels.len() + 1,
            kernels,
            good,
            device,
            target,
            told,
            process: 0,
            standby_process: 0,
            used_standby: 0,
            stream,
            range,
            granule,
            sums,
            host,
            checksum,
            direct,
            contents,
        };
        for block in 0..BLOCKS {
            subject.upload(block);
        }
        subject.await_standby(standby);
        Some(subject)
    }

    /// Waits until there is a standby that has everything.
    pub(crate) fn await_standby(&mut self, standby: bool) {
        let wanted = usize::try_from(BLOCKS).unwrap() + 1;
        loop {
            let news = if standby || self.process == 0 {
                self.told.recv_timeout(Duration::from_secs(60)).expect("a standby")
            } else {
                match self.told.try_recv() {
                    Ok(news) => news,
                    Err(_) => return,
                }
            };
            match news {
                WorkerEvent::Started { process, standby: false } => self.process = process,
                WorkerEvent::Unprepared { what, error, .. } => {
                    writeln!(std::io::stderr().lock(), "a standby lacks {what}: {error}").unwrap();
                }
                WorkerEvent::Prepared { process, has }
                    if process != self.used_standby
                        && has.mappings == wanted
                        && has.kernels == self.kernel_count =>
                {
                    self.standby_process = process;
                    return;
                }
                _ => {}
            }
        }
    }

    pub(crate) fn address(&self, block: u64) -> DeviceAddress {
        DeviceAddress(self.range.address.0 + block * self.granule)
    }

    fn place(&self, block: u64) -> DevicePlace {
        DevicePlace::from(self.range.id).plus(block * self.granule)
    }

    /// Writes the known contents of a block.
    pub(crate) fn upload(&self, block: u64) {
        assert!(self.host.write(0, &self.contents[block as usize]));
        self.device.upload(self.stream, &self.host, self.place(block), self.granule).unwrap();
        self.device.synchronize(self.stream).unwrap();
    }

    /// Reads a block.
    pub(crate) fn download(&self, block: u64) -> Vec<u8> {
        let to = Place::Host { block: self.host.id(), offset: 0 };
        let copy = Command::Copy { from: Place::Device(self.place(block)), to, bytes: self.granule };
        self.device.submit(self.stream, &copy).unwrap();
        self.device.synchronize(self.stream).unwrap();
        let mut bytes = vec![0; self.granule as usize];
        assert!(self.host.read(0, &mut bytes));
        bytes
    }

    /// The checksums of a block, made on the device.
    pub(crate) fn sums(&self, block: u64) -> Vec<u64> {
        let (address, bytes) = (self.address(block), self.granule);
        let summed =
            ChecksumRequest { address, bytes, sums: self.sums.id.into(), sums_address: self.sums.address };
        // SAFETY: the block and the granule for the sums are mapped, and nothing else runs.
        unsafe { self.checksum.submit(&*self.device, self.stream, &summed) }.unwrap();
        let bytes = Checksum::chunks(self.granule) * 8;
        self.device.download(self.stream, self.sums.id.into(), &self.host, bytes).unwrap();
        self.device.synchronize(self.stream).unwrap();
        let mut sums = vec![0; bytes as usize];
        assert!(self.host.read(0, &mut sums));
        sums.chunks_exact(8).map(|sum| u64::from_le_bytes(sum.try_into().unwrap())).collect()
    }

    /// Launches a kernel of one thread.
    pub(crate) fn launch(&self, function: &Function, at: DeviceAddress) -> Result<()> {
        let arguments = at.0.to_le_bytes();
        let launch = LaunchCommand {
            function: function.id,
            grid: 1.into(),
            block: 1.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &arguments,
            declared: None,
            // SAFETY: these kernels fault on purpose, in a worker that holds nothing else.
            vouched: unsafe { Vouched::new() },
        };
        self.device.submit(self.stream, &Command::Launch(launch)).map(drop)
    }

    /// Ends the worker. One that is gone was followed by another, of which no event was read yet.
    fn kill_worker(&mut self) {
        loop {
            let process = i32::try_from(self.process).unwrap();
            match kill_process(Pid::from_raw(process).unwrap(), Signal::KILL) {
                Err(Errno::SRCH) => {
                    let news = self.told.recv_timeout(Duration::from_secs(60)).expect("another worker");
                    if let WorkerEvent::Started { process, standby: false } = news {
                        self.process = process;
                    }
                }
                killed => return killed.unwrap(),
            }
        }
    }

    /// Loses the worker by a kernel that writes into a block, and takes over.
    pub(crate) fn fault_and_recover(&mut self, fault: FaultKind, block: u64) -> Recovery {
        let (_, kernel) = self.kernels.iter().find(|(known, _)| *known == fault).unwrap();
        let begun = Instant::now();
        self.launch(kernel, self.address(block)).unwrap();
        self.used_standby = self.standby_process;
        if fault == FaultKind::Killed {
            self.kill_worker();
        }
        let error = self.device.synchronize(self.stream).unwrap_err();
        let detected = begun.elapsed();
        assert!(error.is_sticky(), "{error}");
        let noticed = Instant::now();
        let takeover = self.device.take_over().unwrap();
        self.launch(&self.good, self.sums.address).unwrap();
        self.device.synchronize(self.stream).unwrap();
        let recovered = noticed.elapsed();
        self.direct = self.device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
        Recovery { code: error.code(), detected, takeover, recovered }
    }
}

/// The kernel of each fault that is possible on the device.
fn kernels(device: &IsolatedDevice, target: Target, module: ModuleId) -> Vec<(FaultKind, Function)> {
    let capability = device.info().capability;
    let possible = FaultKind::ALL.into_iter().filter(|fault| fault.is_possible(target, capability));
    let find = |fault: FaultKind| {
        let module = match (fault, target) {
            (FaultKind::IllegalInstruction, Target::Simulated) => {
                device.load(&Image::HostKernels("illegal")).unwrap()
            }
            (FaultKind::IllegalInstruction, Target::Cuda) => {
                // Made from PTX by ptxas; the instruction that ends the kernel was replaced by one that does not exist.
                device.load(&Image::Cubin(include_bytes!("illegal_instruction.sm90.cubin"))).unwrap()
            }
            _ => module,
        };
        (fault, device.function(module, fault.kernel()).unwrap())
    };
    possible.map(find).collect()
}

/// Maps pages of one granule each, one after the other.
fn mapped(device: &IsolatedDevice, bytes: u64, granule: u64) -> Reservation {
    let range = device.reserve(ReserveRequest { bytes, at: None }).unwrap();
    let pages: Vec<_> = (0..bytes / granule)
        .map(|_| device.create_pages(PageRequest { bytes: granule, exportable: false }).unwrap())
        .collect();
    device.map(range.id, 0, &pages, Protection::ReadWrite).unwrap();
    range
}

/// Bytes without a pattern.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let step = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(step).take(bytes).collect()
}
