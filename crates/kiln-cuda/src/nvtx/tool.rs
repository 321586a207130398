//! The tool that listens, if there is one.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use super::event_attributes::EventAttributes;
use super::function_tables::{self, CORE, CORE2};
use crate::dynamic_library::{Library, RTLD_LAZY, open};

/// Names the library of a tool.
const VARIABLE: &str =
    if cfg!(target_pointer_width = "64") { "NVTX_INJECTION64_PATH" } else { "NVTX_INJECTION32_PATH" };
/// The function of that library which is given the way to the tables.
const ENTRY: &str = "InitializeInjectionNvtx2";

type ExportTable = unsafe extern "C" fn(u32) -> *const c_void;
type Initialize = unsafe extern "C" fn(ExportTable) -> c_int;
type CreateDomain = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type DomainTold = unsafe extern "C" fn(*mut c_void, *const EventAttributes<'_>) -> c_int;
type DomainPop = unsafe extern "C" fn(*mut c_void) -> c_int;
type Told = unsafe extern "C" fn(*const EventAttributes<'_>) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;

/// Whether a tool listens.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Attachment {
    /// No tool asked to.
    NoTool,
    /// One does.
    Attached,
    /// One asked to and cannot; why, and what to do.
    Failed(String),
}

/// Whether a tool listens. The first call looks; what it finds stays so.
pub fn attachment() -> &'static Attachment {
    static ATTACHMENT: OnceLock<Attachment> = OnceLock::new();
    ATTACHMENT.get_or_init(attach)
}

fn attach() -> Attachment {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
        return Attachment::NoTool;
    };
    match attach_library(Path::new(&path)) {
        Ok(()) => Attachment::Attached,
        Err(why) => {
            let path = Path::new(&path).display();
            Attachment::Failed(format!(
                "NVTX has no tool, because {path} {why}; set {VARIABLE} right or unset it"
            ))
        }
    }
}

fn attach_library(path: &Path) -> Result<(), String> {
    // SAFETY: who set the variable wants the initialisers of that library to run in this process.
    let library = unsafe { open(path, RTLD_LAZY) }.map_err(|error| format!("cannot be loaded: {error}"))?;
    // SAFETY: the function of that name has this type in every library for NVTX.
    let initialize = unsafe { library.get::<Initialize>(ENTRY.as_bytes()) };
    let initialize = *initialize.map_err(|_| format!("has no {ENTRY}"))?;
    // SAFETY: the function takes the way to the tables, which live for ever, and puts functions of the right types into them.
    let answer = unsafe { initialize(function_tables::export_table) };
    if answer == 0 {
        return Err("refused to start".to_owned());
    }
    // Its functions are called until the process ends.
    keep(library);
    Ok(())
}

fn keep(library: Library) {
    std::mem::forget(library);
}

/// The domain of kiln; null for the one that is always there.
fn domain() -> *mut c_void {
    struct Domain(*mut c_void);
    // SAFETY: a handle of the tool, which any thread may use.
    unsafe impl Send for Domain {}
    // SAFETY: as above.
    unsafe impl Sync for Domain {}
    static DOMAIN: OnceLock<Domain> = OnceLock::new();
    DOMAIN
        .get_or_init(|| match function_tables::function(CORE2, function_tables::DOMAIN_CREATE) {
            // SAFETY: the function of that number has this type; the name ends with a zero byte.
            Some(create) => Domain(unsafe {
                std::mem::transmute::<*mut c_void, CreateDomain>(create.as_ptr())(c"kiln".as_ptr())
            }),
            None => Domain(ptr::null_mut()),
        })
        .0
}

/// Begins a range of this thread; false if the tool does not take ranges.
pub(super) fn push(attributes: &EventAttributes<'_>) -> bool {
    tell(attributes, function_tables::DOMAIN_RANGE_PUSH, function_tables::RANGE_PUSH)
}

/// Marks this moment.
pub(super) fn mark(attributes: &EventAttributes<'_>) {
    tell(attributes, function_tables::DOMAIN_MARK, function_tables::MARK);
}

fn tell(attributes: &EventAttributes<'_>, in_domain: usize, plain: usize) -> bool {
    let attributes = ptr::from_ref(attributes);
    if let Some(function) = function_tables::function(CORE2, in_domain) {
        // SAFETY: the function of that number takes a domain and attributes; some of them return a number, which nothing is made of.
        unsafe { std::mem::transmute::<*mut c_void, DomainTold>(function.as_ptr())(domain(), attributes) };
        return true;
    }
    let Some(function) = function_tables::function(CORE, plain) else { return false };
    // SAFETY: as above, without a domain.
    unsafe { std::mem::transmute::<*mut c_void, Told>(function.as_ptr())(attributes) };
    true
}

/// Ends the innermost range of this thread.
pub(super) fn pop() {
    if let Some(function) = function_tables::function(CORE2, function_tables::DOMAIN_RANGE_POP) {
        // SAFETY: the function of that number takes a domain.
        unsafe { std::mem::transmute::<*mut c_void, DomainPop>(function.as_ptr())(domain()) };
    } else if let Some(function) = function_tables::function(CORE, function_tables::RANGE_POP) {
        // SAFETY: the function of that number takes nothing.
        unsafe { std::mem::transmute::<*mut c_void, Pop>(function.as_ptr())() };
    }
}
