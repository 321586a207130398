//! Launches as the first versions of the API had them: a shape and parameters are set for a function, and stay for its launches.

use std::ffi::{c_int, c_uint};
use std::sync::{MutexGuard, PoisonError};

use kiln_driver::{Code, Command, Dim3};

use crate::boundary::Answer;
use crate::caller_memory::fetch_slice;
use crate::calls::functions::{Function, function};
use crate::calls::launch::{Shape, check, command};
use crate::calls::process_state::state;
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

/// Parameters of so many bytes can be set.
const MOST_BYTES: usize = 32_764;

/// What was set for the launches of a function.
pub(crate) struct FirstLaunch {
    block: [u32; 3],
    shared_bytes: u32,
    arguments: Vec<u8>,
}

impl Default for FirstLaunch {
    fn default() -> Self {
        Self { block: [1; 3], shared_bytes: 0, arguments: Vec::new() }
    }
}

fn set(function: &Function) -> MutexGuard<'_, FirstLaunch> {
    function.first_launch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets bytes of the parameters.
fn set_bytes(handle: RawHandle, offset: c_int, bytes: &[u8]) -> Answer {
    let function = function(state()?, handle)?;
    let start = usize::try_from(offset).map_err(|_| Code::INVALID_VALUE)?;
    let end = start.checked_add(bytes.len()).filter(|end| *end <= MOST_BYTES).ok_or(Code::INVALID_VALUE)?;
    let arguments = &mut set(&function).arguments;
    if arguments.len() < end {
        arguments.resize(end, 0);
    }
    if let Some(room) = arguments.get_mut(start..end) {
        room.copy_from_slice(bytes);
    }
    Ok(())
}

fn launch(handle: RawHandle, [width, height]: [c_int; 2], stream: RawHandle) -> Answer {
    let state = state()?;
    let function = function(state, handle)?;
    let side = |of: c_int| u32::try_from(of).ok().filter(|of| *of > 0).ok_or(Code::INVALID_VALUE);
    let grid = Dim3::new(side(width)?, side(height)?, 1);
    let (context, choice) = chosen(state, stream)?;
    if context.device != function.device {
        return Err(Code::INVALID_CONTEXT);
    }
    let (shape, mut arguments) = {
        let set = set(&function);
        let [x, y, z] = set.block;
        let (block, shared_bytes) = (Dim3::new(x, y, z), set.shared_bytes);
        let shape = Shape { grid, block, cluster: None, shared_bytes, cooperative: false };
        (shape, set.arguments.clone())
    };
    check(state, &function, shape)?;
    arguments.resize(function.argument_bytes, 0);
    context.order()?.get()?.submit(&choice, &Command::Launch(command(&function, shape, &arguments)))
}

driver_api! {
    fn cuFuncSetBlockShape(handle: RawHandle, x: c_int, y: c_int, z: c_int) {
        let function = function(state()?, handle)?;
        let most = u128::from(function.below.attributes.max_threads_per_block);
        let sides = [x, y, z].map(|side| u32::try_from(side).unwrap_or(0));
        let [x, y, z] = sides;
        let threads = Dim3::new(x, y, z).count();
        if threads == 0 || threads > most {
            return Err(Code::INVALID_VALUE);
        }
        set(&function).block = sides;
        Ok(())
    }

    fn cuFuncSetSharedSize(handle: RawHandle, bytes: c_uint) {
        let state = state()?;
        let function = function(state, handle)?;
        if bytes > function.most_dynamic_shared_bytes(state)? {
            return Err(Code::INVALID_VALUE);
        }
        set(&function).shared_bytes = bytes;
        Ok(())
    }

    fn cuParamSetSize(handle: RawHandle, bytes: c_uint) {
        // A launch takes as many bytes as its kernel has.
        function(state()?, handle)?;
        if bytes as usize > MOST_BYTES { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    fn cuParamSeti(handle: RawHandle, offset: c_int, value: c_uint) {
        set_bytes(handle, offset, &value.to_ne_bytes())
    }

    fn cuParamSetf(handle: RawHandle, offset: c_int, value: f32) {
        set_bytes(handle, offset, &value.to_ne_bytes())
    }

    fn cuParamSetv(handle: RawHandle, offset: c_int, from: usize, bytes: c_uint) {
        function(state()?, handle)?;
        if from == 0 || bytes as usize > MOST_BYTES {
            return Err(Code::INVALID_VALUE);
        }
        let mut value = vec![0; bytes as usize];
        fetch_slice(from, &mut value)?;
        set_bytes(handle, offset, &value)
    }

    fn cuParamSetTexRef(handle: RawHandle, _unit: c_int, _reference: RawHandle) {
        function(state()?, handle)?;
        // There are no texture references.
        Err(Code::INVALID_HANDLE)
    }

    fn cuLaunch(handle: RawHandle) {
        launch(handle, [1, 1], 0)
    }

    fn cuLaunchGrid(handle: RawHandle, width: c_int, height: c_int) {
        launch(handle, [width, height], 0)
    }

    fn cuLaunchGridAsync(handle: RawHandle, width: c_int, height: c_int, stream: RawHandle) {
        launch(handle, [width, height], stream)
    }
}
