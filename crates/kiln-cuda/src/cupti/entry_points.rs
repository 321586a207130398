//! The functions of libcupti.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::{CuptiAbsence, MULTIPLE_SUBSCRIBERS};
use crate::dynamic_library::{Library, RTLD_LOCAL, RTLD_NOW, open};
use crate::libraries::{LibraryKind, SearchEnvironment};

/// Room for the name of the tool that watches.
const NAME_BYTES: usize = 128;

pub(super) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Callback = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);
type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> c_int;
type SubscribeNamed =
    unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void, *mut SubscriberNames) -> c_int;

/// What a newer library is told of who subscribes, and tells of who has.
#[repr(C)]
struct SubscriberNames {
    size: usize,
    own: *const c_char,
    other: *mut c_char,
    other_bytes: usize,
}

/// The functions.
pub(super) struct EntryPoints {
    subscribe: Subscribe,
    /// Tells the name of the tool that watches; newer libraries have it.
    subscribe_named: Option<SubscribeNamed>,
    pub(super) unsubscribe: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(super) register: unsafe extern "C" fn(Request, Complete) -> c_int,
    pub(super) enable: unsafe extern "C" fn(u32) -> c_int,
    pub(super) disable: unsafe extern "C" fn(u32) -> c_int,
    pub(super) flush_all: unsafe extern "C" fn(u32) -> c_int,
    pub(super) next_record: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int,
    pub(super) push_number: unsafe extern "C" fn(c_int, u64) -> c_int,
    pub(super) pop_number: unsafe extern "C" fn(c_int, *mut u64) -> c_int,
    pub(super) dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> c_int,
    pub(super) timestamp: unsafe extern "C" fn(*mut u64) -> c_int,
    result_text: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

impl std::fmt::Debug for EntryPoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EntryPoints")
    }
}

impl EntryPoints {
    /// Those of the library, which is loaded once and never unloaded. A failure is not remembered.
    pub(super) fn load() -> Result<&'static Self, CuptiAbsence> {
        static LOADED: OnceLock<EntryPoints> = OnceLock::new();
        if let Some(loaded) = LOADED.get() {
            return Ok(loaded);
        }
        let found = SearchEnvironment::of_process().find(LibraryKind::Cupti);
        let found = found.map_err(|missing| CuptiAbsence::Library(missing.to_string()))?;
        // SAFETY: the library is NVIDIA's, or the one that the user named; its initialisers run in this process.
        let library = unsafe { open(&found.path, RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            CuptiAbsence::Library(format!(
                "{} cannot be loaded: {error}; {}",
                found.path.display(),
                LibraryKind::Cupti.advice()
            ))
        })?;
        let loaded = Self::of(&library)?;
        // Its threads and callbacks live as long as the process.
        std::mem::forget(library);
        Ok(LOADED.get_or_init(|| loaded))
    }

    fn of(library: &Library) -> Result<Self, CuptiAbsence> {
        // SAFETY: each type below is the one that CUPTI's header declares for the function of that name.
        unsafe {
            Ok(Self {
                subscribe: symbol(library, "cuptiSubscribe")?,
                subscribe_named: symbol(library, "cuptiSubscribe_v2").ok(),
                unsubscribe: symbol(library, "cuptiUnsubscribe")?,
                register: symbol(library, "cuptiActivityRegisterCallbacks")?,
                enable: symbol(library, "cuptiActivityEnable")?,
                disable: symbol(library, "cuptiActivityDisable")?,
                flush_all: symbol(library, "cuptiActivityFlushAll")?,
                next_record: symbol(library, "cuptiActivityGetNextRecord")?,
                push_number: symbol(library, "cuptiActivityPushExternalCorrelationId")?,
                pop_number: symbol(library, "cuptiActivityPopExternalCorrelationId")?,
                dropped: symbol(library, "cuptiActivityGetNumDroppedRecords")?,
                timestamp: symbol(library, "cuptiGetTimestamp")?,
                result_text: symbol(library, "cuptiGetResultString")?,
            })
        }
    }

    /// Takes the place of the one tool that may watch; the handle as a number.
    pub(super) fn subscribe(&self) -> Result<usize, CuptiAbsence> {
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: a place for the handle, and a function that does nothing, of the right type.
        let status = unsafe { (self.subscribe)(&raw mut subscriber, nothing, std::ptr::null_mut()) };
        if status == MULTIPLE_SUBSCRIBERS {
            return Err(CuptiAbsence::Held { by: self.holder() });
        }
        self.check("cuptiSubscribe", status)?;
        Ok(subscriber.expose_provenance())
    }

    /// The name of the tool that watches.
    fn holder(&self) -> Option<String> {
        let subscribe = self.subscribe_named?;
        let (mut subscriber, mut name) = (std::ptr::null_mut(), [0; NAME_BYTES]);
        let mut names = SubscriberNames {
            size: size_of::<SubscriberNames>(),
            own: c"kiln".as_ptr(),
            other: name.as_mut_ptr().cast(),
            other_bytes: NAME_BYTES - 1,
        };
        // SAFETY: places for the handle and the name, with its length, and a function that does nothing.
        let status = unsafe { subscribe(&raw mut subscriber, nothing, std::ptr::null_mut(), &raw mut names) };
        if status == 0 {
            // It was given up meanwhile; the caller may try again.
            // SAFETY: the handle that the call gave.
            let _ = unsafe { (self.unsubscribe)(subscriber) };
            return None;
        }
        let text = CStr::from_bytes_until_nul(&name).ok()?.to_string_lossy().into_owned();
        if text.is_empty() { None } else { Some(text) }
    }

    /// Success, or what was answered in words.
    pub(super) fn check(&self, call: &'static str, status: c_int) -> Result<(), CuptiAbsence> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: a place for a text that lives as long as the library.
        let known = unsafe { (self.result_text)(status, &raw mut text) } == 0 && !text.is_null();
        // SAFETY: as above; it ends with a zero byte.
        let text = if known { unsafe { CStr::from_ptr(text) }.to_string_lossy() } else { "unknown".into() };
        Err(CuptiAbsence::Call { call, status, text: text.into_owned() })
    }
}

unsafe extern "C" fn nothing(_: *mut c_void, _: c_int, _: u32, _: *const c_void) {}

/// A function of a library.
///
/// # Safety
/// The type is that of the function.
unsafe fn symbol<F: Copy>(library: &Library, name: &'static str) -> Result<F, CuptiAbsence> {
    // SAFETY: the caller vouches for the type.
    match unsafe { library.get::<F>(name.as_bytes()) } {
        Ok(found) => Ok(*found),
        Err(_) => Err(CuptiAbsence::Library(format!(
            "it has no `{name}`, which that of CUDA 12 and newer has; {}",
            LibraryKind::Cupti.advice()
        ))),
    }
}
