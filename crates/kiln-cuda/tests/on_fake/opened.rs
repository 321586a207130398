//! An opened device, and the few things every test makes with it.

use std::sync::Arc;

use kiln_cuda::CudaDevice;
use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Dim3, Driver, DriverExt, Function, HostBlock, Image, LaunchCommand,
    MemoryRequest, ModuleId, Result, StreamId, StreamRequest, Submission, Vouched,
};

/// Kernels that the stand-in knows by name.
pub(crate) const CODE: &str = "
.version 8.0
.target sm_90
.global .u32 counter;
.visible .entry set(.param .u64 to, .param .u32 value, .param .u32 count) { ret; }
.visible .entry nothing() { ret; }
.visible .entry first_of(.param .u64 to, .param .align 64 .b8 map[128]) { ret; }
.visible .entry crash() { ret; }
.visible .entry stall() { ret; }
.visible .entry resume() { ret; }
";

/// The first device.
pub(crate) fn device() -> Arc<CudaDevice> {
    CudaDevice::open(0).unwrap()
}

/// A device with a stream and the kernels above.
pub(crate) struct Bench {
    pub(crate) device: Arc<CudaDevice>,
    pub(crate) stream: StreamId,
    pub(crate) module: ModuleId,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let device = device();
        let stream = device.create_stream(StreamRequest::New { priority: 0 }).unwrap();
        let module = device.load(&Image::Ptx(CODE)).unwrap();
        Self { device, stream, module }
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.device.create_stream(StreamRequest::New { priority: 0 }).unwrap()
    }

    pub(crate) fn function(&self, name: &str) -> Function {
        self.device.function(self.module, name).unwrap()
    }

    pub(crate) fn memory(&self, bytes: u64) -> DeviceMemory {
        self.device.allocate(MemoryRequest::Direct { bytes }).unwrap()
    }

    pub(crate) fn host(&self, bytes: &[u8]) -> HostBlock {
        let block = self.device.allocate_host(bytes.len() as u64).unwrap();
        assert!(block.write(0, bytes));
        block
    }

    /// Runs a kernel without arguments.
    pub(crate) fn run(&self, name: &str) -> Result<Submission> {
        let function = self.function(name);
        self.device.submit(self.stream, &Command::Launch(launch(&function, &[])))
    }

    /// Reads device memory back through a host block.
    pub(crate) fn read(&self, from: impl Into<DevicePlace>, bytes: u64) -> Vec<u8> {
        let block = self.device.allocate_host(bytes).unwrap();
        self.device.download(self.stream, from.into(), &block, bytes).unwrap();
        self.device.synchronize(self.stream).unwrap();
        let mut data = vec![0; bytes as usize];
        assert!(block.read(0, &mut data));
        data
    }
}

/// One block of one thread.
pub(crate) fn launch<'a>(function: &Function, arguments: &'a [u8]) -> LaunchCommand<'a> {
    LaunchCommand {
        function: function.id,
        grid: Dim3::from(1),
        block: Dim3::from(1),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments,
        declared: None,
        // SAFETY: the stand-in's kernels write at most what `set` is told to, which the tests keep inside of a block.
        vouched: unsafe { Vouched::new() },
    }
}

/// The packed arguments of `set`.
pub(crate) fn set_arguments(to: DeviceMemory, value: u32, count: u32) -> Vec<u8> {
    [&to.address.0.to_le_bytes()[..], &value.to_le_bytes(), &count.to_le_bytes()].concat()
}
