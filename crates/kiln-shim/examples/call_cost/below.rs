//! The same work by the calls of the driver interface that it comes to.

use std::ffi::CStr;
use std::sync::Arc;

use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Dim3, Driver, DriverExt, Error, EventId, EventRequest, Function,
    Image, LaunchCommand, MemoryRequest, Pattern, Place, StreamId, StreamRequest, Vouched,
};
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine, SimChecks};

use super::table::{BYTES, KERNEL, Side, Work};

/// What the work is done with.
pub(crate) struct Below {
    driver: Arc<dyn Driver>,
    stream: StreamId,
    event: EventId,
    function: Function,
    to: DeviceMemory,
    from: DeviceMemory,
    arguments: Vec<u8>,
}

impl Below {
    pub(crate) fn new(code: &CStr) -> Result<Self, Box<dyn std::error::Error>> {
        // A machine like that of the library.
        let checks = SimChecks { declarations: false, leaks: false, ..SimChecks::default() };
        let mut config = MachineConfig::seeded(0).engine(Arc::new(PtxEngine::default())).checks(checks);
        config.limits.trace_bytes = 0;
        config.limits.spans = 0;
        config.devices = vec![DeviceConfig::with_memory(80 << 30)];
        let driver: Arc<dyn Driver> = Machine::new(config).device(0)?;
        let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
        let event = driver.create_event(EventRequest::Timed)?;
        let module = driver.load(&Image::Ptx(code.to_str()?))?;
        let function = driver.function(module, KERNEL.to_str()?)?;
        let bytes = BYTES as u64;
        let to = driver.allocate(MemoryRequest::Direct { bytes })?;
        let from = driver.allocate(MemoryRequest::Direct { bytes })?;
        driver.fill(stream, from.id.into(), 1, bytes)?;
        let values = [to.address.0, from.address.0, to.address.0, from.address.0];
        let mut arguments: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        arguments.extend(3_u32.to_ne_bytes());
        Ok(Self { driver, stream, event, function, to, from, arguments })
    }

    fn launch(&self) -> Command<'_> {
        Command::Launch(LaunchCommand {
            function: self.function.id,
            grid: Dim3::new(1, 1, 1),
            block: Dim3::new(32, 1, 1),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &self.arguments,
            declared: None,
            // SAFETY: the device is simulated and checks each access of the kernel.
            vouched: unsafe { Vouched::new() },
        })
    }

    fn work(&self, work: Work) -> Result<(), Error> {
        let (driver, stream, bytes) = (&*self.driver, self.stream, BYTES as u64);
        let command = match work {
            Work::CurrentContext => return Ok(()),
            Work::AskEvent => return driver.is_done(self.event).map(|_| ()),
            Work::AllocateAndFree => {
                let memory = driver.allocate(MemoryRequest::Pool { bytes, stream })?;
                return driver.free(memory.id, Some(stream));
            }
            Work::Record => Command::Signal(self.event),
            Work::WaitForEvent => Command::Wait(self.event),
            Work::Fill => Command::Fill { to: self.to.id.into(), pattern: Pattern::U8(1), count: bytes },
            Work::Copy => {
                let place = |memory: &DeviceMemory| Place::Device(DevicePlace::from(memory.id));
                Command::Copy { from: place(&self.from), to: place(&self.to), bytes }
            }
            Work::Launch | Work::LaunchFromHeap => self.launch(),
        };
        driver.submit(stream, &command).map(|_| ())
    }
}

impl Side for Below {
    fn run(&mut self, work: Work) -> Result<(), String> {
        self.work(work).map_err(|error| error.to_string())
    }

    fn settle(&mut self) -> Result<(), String> {
        self.driver.synchronize(self.stream).map_err(|error| error.to_string())
    }
}
