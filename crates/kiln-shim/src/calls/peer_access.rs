//! Kernels that reach the memory of another device.
//!
//! The API lets one context into the memory of another; below, a device reaches the memory of a device while one of its contexts was let into one there.

use std::ffi::{c_int, c_uint};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::CUdevice_P2PAttribute as Attribute;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::Out;
use crate::calls::context::{Context, named};
use crate::calls::process_state::{ProcessState, current, state};
use crate::handle_table::RawHandle;

const ALREADY_ENABLED: Code = Code(704);
const NOT_ENABLED: Code = Code(705);

/// Which contexts were let into the memory of which.
#[derive(Default)]
pub(crate) struct PeerAccess {
    enabled: Mutex<Vec<Enabled>>,
}

/// One context that was let into the memory of another, both with their devices.
#[derive(Clone, Copy)]
struct Enabled {
    context: u64,
    peer: u64,
    devices: (u32, u32),
}

impl PeerAccess {
    fn enable(&self, state: &ProcessState, context: &Context, peer: &Context) -> Answer {
        let mut enabled = self.enabled.lock().unwrap_or_else(PoisonError::into_inner);
        let new =
            Enabled { context: context.number, peer: peer.number, devices: (context.device, peer.device) };
        if enabled.iter().any(|old| (old.context, old.peer) == (new.context, new.peer)) {
            return Err(ALREADY_ENABLED);
        }
        if !enabled.iter().any(|old| old.devices == new.devices) {
            state.backend.set_peer_access(context.device, peer.device, true)?;
        }
        enabled.push(new);
        Ok(())
    }

    /// Takes out those that are meant, and says how many there were.
    fn disable(&self, state: &ProcessState, is_meant: impl Fn(&Enabled) -> bool) -> Answer<usize> {
        let mut enabled = self.enabled.lock().unwrap_or_else(PoisonError::into_inner);
        let (gone, left): (Vec<Enabled>, Vec<Enabled>) = enabled.iter().copied().partition(is_meant);
        *enabled = left;
        for Enabled { devices, .. } in &gone {
            if !enabled.iter().any(|old| old.devices == *devices) {
                state.backend.set_peer_access(devices.0, devices.1, false)?;
            }
        }
        Ok(gone.len())
    }

    /// Ends what a context has to do with: it is gone.
    pub(crate) fn end_context(&self, state: &ProcessState, number: u64) {
        // A lost device reaches nothing.
        let _ = self.disable(state, |enabled| enabled.context == number || enabled.peer == number);
    }
}

/// The ordinals of two devices that a program gave.
fn pair(device: c_int, peer: c_int) -> Answer<(&'static ProcessState, u32, u32)> {
    let state = state()?;
    state.device(device)?;
    state.device(peer)?;
    Ok((state, device as u32, peer as u32))
}

/// What the simulated machine says of two devices that are connected, or are not.
fn simulated(number: c_uint, is_connected: bool) -> Answer<c_int> {
    match number {
        n if n == Attribute::CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK as u32 => Ok(0),
        n if n == Attribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED as u32
            || n == Attribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED as u32 =>
        {
            Ok(is_connected.into())
        }
        // Arrays of another device.
        n if n == Attribute::CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED as u32 => Ok(0),
        _ => Err(Code::INVALID_VALUE),
    }
}

driver_api! {
    fn cuDeviceCanAccessPeer(out: Out<c_int>, device: c_int, peer: c_int) {
        let (state, device, peer) = pair(device, peer)?;
        out.set(c_int::from(state.backend.can_access_peer(device, peer)))
    }

    fn cuDeviceGetP2PAttribute(out: Out<c_int>, number: c_uint, device: c_int, peer: c_int) {
        let (state, device, peer) = pair(device, peer)?;
        if device == peer {
            return Err(Code::INVALID_DEVICE);
        }
        match state.backend.peer_attribute(number, device, peer) {
            Some(value) => out.set(value),
            None => out.set(simulated(number, state.backend.can_access_peer(device, peer))?),
        }
    }

    fn cuCtxEnablePeerAccess(peer: RawHandle, flags: c_uint) {
        let (state, context) = current()?;
        let peer = named(state, peer)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if peer.device == context.device {
            return Err(Code::INVALID_CONTEXT);
        }
        state.peers.enable(state, &context, &peer)
    }

    fn cuCtxDisablePeerAccess(peer: RawHandle) {
        let (state, context) = current()?;
        let peer = named(state, peer)?;
        let is_meant = |enabled: &Enabled| (enabled.context, enabled.peer) == (context.number, peer.number);
        if state.peers.disable(state, is_meant)? == 0 { Err(NOT_ENABLED) } else { Ok(()) }
    }
}
