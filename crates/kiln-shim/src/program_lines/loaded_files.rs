//! The files of code that are loaded into the process: the program, and shared libraries.
//!
//! A library that is unloaded leaves its addresses to the next one, and the same library comes back with other code when it was built again. A file is told from others
//! by its place, its name and its own marks: its program headers and its notes, of which the number of the build is one.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

/// Folders of the system's libraries, whose frames without a name say nothing of the program.
const OF_SYSTEM: [&str; 3] = ["/lib/", "/lib64/", "/usr/lib"];

/// A file of code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct LoadedFile {
    addresses: Range<usize>,
    /// Address 0 of the file lies there.
    base: usize,
    /// Empty for the program itself.
    name: String,
    mark: u64,
}

impl LoadedFile {
    /// Whether an address is one of its.
    pub(super) fn holds(&self, address: usize) -> bool {
        self.addresses.contains(&address)
    }

    /// # Safety
    /// `info` is what the loader gave to a function that runs now.
    unsafe fn read(info: &libc::dl_phdr_info) -> Option<Self> {
        // SAFETY: the loader gives so many headers, and a name that ends with a zero byte, for as long as the function runs.
        let (headers, name) = unsafe {
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (headers, CStr::from_ptr(info.dlpi_name))
        };
        let base = info.dlpi_addr as usize;
        let place = |header: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(header.p_vaddr as usize);
            start..start.wrapping_add(header.p_memsz as usize)
        };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loaded().map(|header| place(header).start).min()?;
        let end = loaded().map(|header| place(header).end).max()?;
        let mut mark = Mark::new();
        for header in headers {
            for field in [u64::from(header.p_type), header.p_vaddr, header.p_filesz, header.p_memsz] {
                mark.add(&field.to_ne_bytes());
            }
            let notes = place(header);
            let is_there = |segment: &libc::Elf64_Phdr| {
                let segment_has = place(segment);
                segment.p_flags & libc::PF_R != 0
                    && segment_has.start <= notes.start
                    && notes.end <= segment_has.end
            };
            if header.p_type == libc::PT_NOTE && loaded().any(is_there) {
                // SAFETY: the bytes lie in a part of the file that is loaded and can be read, and stays loaded as long as the function runs.
                mark.add(unsafe { std::slice::from_raw_parts(notes.start as *const u8, notes.len()) });
            }
        }
        let name = name.to_string_lossy().into_owned();
        Some(Self { addresses: start..end, base, name, mark: mark.0 })
    }
}

/// A number of bytes that differ.
struct Mark(u64);

impl Mark {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Asks the loader for each file, until the function says that it has enough.
fn each_file(mut look: impl FnMut(&libc::dl_phdr_info) -> bool) {
    extern "C" fn each<F: FnMut(&libc::dl_phdr_info) -> bool>(
        info: *mut libc::dl_phdr_info,
        _bytes: usize,
        look: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives a file, and the function that it got, which lives until it is done.
        let (info, look) = unsafe { (&*info, &mut *look.cast::<F>()) };
        c_int::from(look(info))
    }
    fn callback<F: FnMut(&libc::dl_phdr_info) -> bool>(
        _: &F,
    ) -> unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int {
        each::<F>
    }
    // SAFETY: the function is called with what is given beside it, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(callback(&look)), (&raw mut look).cast()) };
}

/// All files.
pub(super) fn all() -> Vec<LoadedFile> {
    let mut files = Vec::new();
    each_file(|info| {
        // SAFETY: the loader calls with it.
        files.extend(unsafe { LoadedFile::read(info) });
        false
    });
    files
}

/// The files of some addresses, without those that stay as long as the process.
pub(super) fn that_may_go(addresses: &[usize]) -> Vec<LoadedFile> {
    if addresses.iter().all(|address| stays(*address)) {
        return Vec::new();
    }
    let is_meant =
        |file: &LoadedFile| addresses.iter().any(|address| file.holds(*address) && !stays(*address));
    all().into_iter().filter(is_meant).collect()
}

/// Whether an address is in the program itself or in the C library, which are never unloaded.
pub(super) fn stays(address: usize) -> bool {
    staying().iter().any(|file| file.holds(address))
}

fn staying() -> &'static [LoadedFile] {
    static STAYING: OnceLock<Vec<LoadedFile>> = OnceLock::new();
    STAYING.get_or_init(|| {
        let of_c = libc::abort as *const () as usize;
        // The loader tells the program first.
        all()
            .into_iter()
            .enumerate()
            .filter(|(at, file)| *at == 0 || file.holds(of_c))
            .map(|(_, file)| file)
            .collect()
    })
}

/// How many files have been unloaded since the process began.
pub(super) fn unloads() -> u64 {
    let mut unloads = 0;
    each_file(|info| {
        unloads = info.dlpi_subs;
        true
    });
    unloads
}

/// Where code is in its file, such as `run+0x1234`, and the name of its function if the file exports it; nothing for the system's libraries, and where there is no file.
/// The address is that of the call, and not where the code goes on after it.
pub(super) fn place_in_file(file: Option<&LoadedFile>, goes_on_at: usize) -> Option<(String, String)> {
    let file = file.or_else(|| staying().iter().find(|file| file.holds(goes_on_at)))?;
    let program = || Some(std::fs::read_link("/proc/self/exe").ok()?.to_string_lossy().into_owned());
    let path = if file.name.is_empty() { program()? } else { file.name.clone() };
    if OF_SYSTEM.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    let at = goes_on_at.wrapping_sub(1);
    let name = Path::new(&path).file_name()?.to_string_lossy().into_owned();
    Some((format!("{name}+{:#x}", at.wrapping_sub(file.base)), name_of(file, at).unwrap_or_default()))
}

/// The name of the function at an address, if its file is still loaded and exports it.
fn name_of(file: &LoadedFile, at: usize) -> Option<String> {
    if !all().contains(file) {
        return None;
    }
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the place is for an answer, which the call fills if it answers anything but 0; a name that it gives ends with a zero byte, and stays while the file is loaded.
    unsafe {
        if libc::dladdr(at as *const c_void, found.as_mut_ptr()) == 0 {
            return None;
        }
        let name = found.assume_init().dli_sname;
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_the_c_library_stay_and_another_library_may_go() {
        let own = the_program_and_the_c_library_stay_and_another_library_may_go as *const () as usize;
        assert!(stays(own) && stays(libc::malloc as *const () as usize));
        assert!(that_may_go(&[own, libc::abort as *const () as usize]).is_empty());
        let here = 0_u8;
        assert!(!stays((&raw const here).addr()) && that_may_go(&[(&raw const here).addr()]).is_empty());
        let files = all();
        let of_others = files.iter().find(|file| !file.name.is_empty() && !stays(file.addresses.start));
        let other = of_others.unwrap().addresses.start;
        assert_eq!(that_may_go(&[own, other]).len(), 1);
    }

    #[test]
    fn a_place_in_the_program_has_its_file() {
        let own = a_place_in_the_program_has_its_file as *const () as usize + 1;
        let (place, _) = place_in_file(None, own).unwrap();
        let name = std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        assert!(place.starts_with(&format!("{name}+0x")), "{place}");
        assert_eq!(place_in_file(None, libc::abort as *const () as usize), None);
    }
}
