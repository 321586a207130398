//! Kernels that reach the memory of another device.

use std::ffi::c_int;

use cudarc::driver::sys;
use kiln_driver::{Code, Error, Result};

use crate::cuda_absence::StartFault;
use crate::device::CudaDevice;
use crate::libcuda::{Libcuda, start_check};
use crate::libcuda_symbols::Status;

/// A question to the driver about two devices.
type Ask<'a> = &'a dyn Fn(&mut c_int, sys::CUdevice, sys::CUdevice) -> Status;

impl Libcuda {
    /// Whether kernels of one device can be let into the memory of another.
    ///
    /// # Errors
    /// A fault with the code of the driver: it does not know a device, or has no such question.
    pub fn can_access_peer(&self, ordinal: u32, peer: u32) -> std::result::Result<bool, StartFault> {
        const CALL: &str = "cuDeviceCanAccessPeer";
        let ask = self.api().peer_can_access.ok_or(missing(CALL))?;
        // SAFETY: the out-parameter is live, and the driver was started when the library was loaded.
        self.ask(CALL, [ordinal, peer], &|value, device, peer| unsafe { ask(value, device, peer) })
            .map(|can| can != 0)
    }

    /// An attribute of two devices, by its number in CUDA.
    ///
    /// # Errors
    /// A fault with the code of the driver: it does not know the attribute or a device.
    pub fn peer_attribute(
        &self,
        number: u32,
        ordinal: u32,
        peer: u32,
    ) -> std::result::Result<c_int, StartFault> {
        const CALL: &str = "cuDeviceGetP2PAttribute";
        let ask = self.api().peer_attribute.ok_or(missing(CALL))?;
        // SAFETY: as above; a number that is no attribute is refused.
        self.ask(CALL, [ordinal, peer], &|value, device, peer| unsafe { ask(value, number, device, peer) })
    }

    fn ask(
        &self,
        call: &'static str,
        ordinals: [u32; 2],
        ask: Ask<'_>,
    ) -> std::result::Result<c_int, StartFault> {
        let mut devices = [0; 2];
        for (device, ordinal) in devices.iter_mut().zip(ordinals) {
            // SAFETY: the out-parameter is a live local, and the driver was started when the library was loaded.
            start_check("cuDeviceGet", unsafe { (self.api().device)(device, ordinal as c_int) })?;
        }
        let mut value = 0;
        start_check(call, ask(&mut value, devices[0], devices[1]))?;
        Ok(value)
    }
}

fn missing(call: &'static str) -> StartFault {
    StartFault { call, code: Code::NOT_SUPPORTED }
}

impl CudaDevice {
    /// Lets kernels of this device reach the memory of another one, at the addresses that it has there; at first they do not. It is said once for each of the two
    /// directions.
    ///
    /// ```
    /// use kiln_cuda::CudaDevice;
    ///
    /// if let (Ok(first), Ok(second)) = (CudaDevice::open(0), CudaDevice::open(1)) {
    ///     match first.enable_peer_access(&second) {
    ///         Ok(()) => println!("kernels of device 0 reach the memory of device 1"),
    ///         Err(error) => println!("{error}"),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// Refused with the code of the driver: the devices are not connected, or it was said before.
    pub fn enable_peer_access(&self, peer: &Self) -> Result<()> {
        const CALL: &str = "enable_peer_access";
        let api = self.context.enter(CALL)?;
        let enable = api.peer_enable.ok_or_else(|| unsupported(CALL))?;
        // SAFETY: the context of an open device is there as long as the device.
        self.context.check(CALL, unsafe { enable(peer.context.raw(), 0) })
    }

    /// Ends what [`enable_peer_access`](Self::enable_peer_access) began.
    ///
    /// # Errors
    /// Refused with the code of the driver: it did not begin.
    pub fn disable_peer_access(&self, peer: &Self) -> Result<()> {
        const CALL: &str = "disable_peer_access";
        let api = self.context.enter(CALL)?;
        let disable = api.peer_disable.ok_or_else(|| unsupported(CALL))?;
        // SAFETY: as above.
        self.context.check(CALL, unsafe { disable(peer.context.raw()) })
    }
}

fn unsupported(call: &'static str) -> Error {
    Error::unsupported(call, "memory of another device in a kernel", "copy it to this device")
}
