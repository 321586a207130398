//! Objects of the program that graphs keep alive: the last reference calls a function of the program.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::Code;

use crate::boundary::{Answer, set_inside};
use crate::caller_memory::Out;
use crate::calls::graphs::graph;
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

type Destructor = Option<extern "C" fn(*mut c_void)>;

/// The flag that all objects are made with: nothing waits for their function.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
/// The graph takes over references of the caller.
const MOVE: c_uint = 1;

/// An object of the program.
pub(crate) struct UserObject {
    data: usize,
    destructor: extern "C" fn(*mut c_void),
    references: Mutex<u64>,
}

impl UserObject {
    fn retain(&self, count: u64) {
        let mut references = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        *references = references.saturating_add(count);
    }

    /// Takes references away; whether these were the last.
    fn release(&self, count: u64) -> bool {
        let mut references = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        let had_some = *references > 0;
        *references = references.saturating_sub(count);
        had_some && *references == 0
    }
}

/// The object of a handle.
fn object(state: &ProcessState, handle: RawHandle) -> Answer<Arc<UserObject>> {
    state.user_objects.get(handle).ok_or(Code::INVALID_VALUE)
}

/// Takes references away, and calls the function of the program after the last.
fn release(state: &ProcessState, handle: RawHandle, count: u64) -> Answer {
    let object = object(state, handle)?;
    if object.release(count) {
        state.user_objects.remove(handle);
        // No call is permitted to the function, as to one that a stream calls.
        set_inside(true);
        (object.destructor)(object.data as *mut c_void);
        set_inside(false);
    }
    Ok(())
}

/// The references that a graph or an executable graph has; they go with it.
#[derive(Default)]
pub(crate) struct UserReferences {
    counts: Mutex<BTreeMap<RawHandle, u64>>,
}

impl UserReferences {
    fn add(&self, handle: RawHandle, count: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(handle).or_default() += count;
    }

    /// Takes some away, as far as there are some.
    fn take(&self, handle: RawHandle, count: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = counts.get_mut(&handle) {
            *own = own.saturating_sub(count);
        }
        counts.retain(|_, own| *own > 0);
    }

    /// One reference to each object, for a copy of the graph.
    pub(crate) fn copy(&self, state: &ProcessState) -> Self {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = Self::default();
        for handle in counts.keys() {
            if let Ok(object) = object(state, *handle) {
                object.retain(1);
                copy.add(*handle, 1);
            }
        }
        copy
    }

    /// Gives all of them back.
    pub(crate) fn release_all(&self, state: &ProcessState) {
        let counts = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        for (handle, count) in counts {
            // An object that the program released too often is gone.
            let _ = release(state, handle, count);
        }
    }
}

fn checked(count: c_uint) -> Answer<u64> {
    if (1..=i32::MAX as c_uint).contains(&count) { Ok(count.into()) } else { Err(Code::INVALID_VALUE) }
}

driver_api! {
    fn cuUserObjectCreate(out: Out<RawHandle>, data: usize, destructor: Destructor, count: c_uint, flags: c_uint) {
        let state = state()?;
        out.check()?;
        let destructor = destructor.ok_or(Code::INVALID_VALUE)?;
        let references = Mutex::new(checked(count)?);
        if flags != NO_DESTRUCTOR_SYNC {
            return Err(Code::INVALID_VALUE);
        }
        let object = UserObject { data, destructor, references };
        out.set(state.user_objects.insert(Arc::new(object)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuUserObjectRetain(handle: RawHandle, count: c_uint) {
        let object = object(state()?, handle)?;
        object.retain(checked(count)?);
        Ok(())
    }

    fn cuUserObjectRelease(handle: RawHandle, count: c_uint) {
        let state = state()?;
        object(state, handle)?;
        release(state, handle, checked(count)?)
    }

    fn cuGraphRetainUserObject(handle: RawHandle, user_object: RawHandle, count: c_uint, flags: c_uint) {
        let state = state()?;
        let graph = graph(state, handle)?;
        let object = object(state, user_object)?;
        let count = checked(count)?;
        match flags {
            0 => object.retain(count),
            MOVE => {}
            _ => return Err(Code::INVALID_VALUE),
        }
        graph.objects.add(user_object, count);
        Ok(())
    }

    fn cuGraphReleaseUserObject(handle: RawHandle, user_object: RawHandle, count: c_uint) {
        let state = state()?;
        let graph = graph(state, handle)?;
        object(state, user_object)?;
        let count = checked(count)?;
        graph.objects.take(user_object, count);
        release(state, user_object, count)
    }
}
