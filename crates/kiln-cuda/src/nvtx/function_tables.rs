//! The tables into which a tool puts its functions.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Functions of the first interface, by their numbers.
pub(super) const CORE: usize = 1;
/// Functions with domains.
pub(super) const CORE2: usize = 5;

pub(super) const MARK: usize = 1;
pub(super) const RANGE_PUSH: usize = 8;
pub(super) const RANGE_POP: usize = 11;
pub(super) const DOMAIN_MARK: usize = 1;
pub(super) const DOMAIN_RANGE_PUSH: usize = 4;
pub(super) const DOMAIN_RANGE_POP: usize = 5;
pub(super) const DOMAIN_CREATE: usize = 12;

/// How many numbers each group of functions has, the unused 0 among them: none, the first interface, CUDA's, OpenCL's, those of CUDA's runtime,
/// domains, synchronisation. kiln calls few of them; a tool expects all.
const NUMBERS: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];

const CALLBACKS: u32 = 1;
const VERSION_INFO: u32 = 3;
const NVTX_VERSION: u32 = 3;

/// One group of functions.
struct Group {
    functions: Box<[AtomicPtr<c_void>]>,
    /// Where each of them stands; nothing at 0 and behind the last.
    places: Box<[*mut *mut c_void]>,
}

struct Tables {
    groups: [Group; NUMBERS.len()],
    callbacks: Callbacks,
    version: VersionInfo,
}

#[repr(C)]
struct Callbacks {
    size: usize,
    group: unsafe extern "C" fn(c_int, *mut *const *mut *mut c_void, *mut c_uint) -> c_int,
}

#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_tool_version: unsafe extern "C" fn(u32),
}

// SAFETY: the places point to atomics that live as long as the tables, which are never dropped.
unsafe impl Sync for Tables {}
// SAFETY: nothing in them belongs to a thread.
unsafe impl Send for Tables {}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| Tables {
        groups: NUMBERS.map(Group::new),
        callbacks: Callbacks { size: size_of::<Callbacks>(), group: export_group },
        version: VersionInfo {
            size: size_of::<VersionInfo>(),
            version: NVTX_VERSION,
            reserved: 0,
            set_tool_version,
        },
    })
}

impl Group {
    fn new(numbers: usize) -> Self {
        let functions: Box<[AtomicPtr<c_void>]> =
            (0..numbers).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        let mut places: Vec<*mut *mut c_void> = functions.iter().map(AtomicPtr::as_ptr).collect();
        if let Some(unused) = places.first_mut() {
            *unused = ptr::null_mut();
        }
        places.push(ptr::null_mut());
        Self { functions, places: places.into() }
    }
}

/// The function with a number in a group, if the tool has put one there.
pub(super) fn function(group: usize, number: usize) -> Option<ptr::NonNull<c_void>> {
    let function = tables().groups.get(group)?.functions.get(number)?;
    ptr::NonNull::new(function.load(Ordering::Acquire))
}

/// What a tool asks for its way to the tables.
pub(super) unsafe extern "C" fn export_table(table: u32) -> *const c_void {
    match table {
        CALLBACKS => ptr::from_ref(&tables().callbacks).cast(),
        VERSION_INFO => ptr::from_ref(&tables().version).cast(),
        _ => ptr::null(),
    }
}

/// A group of functions, and how many numbers it has.
unsafe extern "C" fn export_group(
    group: c_int,
    places: *mut *const *mut *mut c_void,
    numbers: *mut c_uint,
) -> c_int {
    let found = usize::try_from(group).ok().and_then(|group| tables().groups.get(group));
    let Some(group) = found.filter(|group| !group.functions.is_empty()) else { return 0 };
    // SAFETY: the tool gives null or a place for each answer.
    unsafe {
        if let Some(places) = places.as_mut() {
            *places = group.places.as_ptr();
        }
        if let Some(numbers) = numbers.as_mut() {
            *numbers = group.functions.len() as c_uint;
        }
    }
    1
}

unsafe extern "C" fn set_tool_version(_: u32) {}
