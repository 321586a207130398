//! Small values of the program, such as the arguments of a launch, fetched with as few questions to the system as can be.
//!
//! A copy by the system ([`fetch_slice`]) costs more than the rest of a launch. What lies on the stack of the calling thread, above the frames of this
//! library, is there without a question, and so is what lies in the data segment of the process, which `malloc` takes for small pieces: it reaches to its break,
//! which the C library knows. Of other pages the system is asked once in a call, by a function that refuses its arguments after it read them.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::OnceLock;

use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::fetch_slice;
use crate::thread_stack;

/// Pages are at least so large; a larger one is asked for in parts.
const PAGE_BYTES: usize = 4096;
/// Bytes of the set of signals, as the system has it.
const SIGNALS_BYTES: usize = 8;

/// Fetches the values of one call.
pub(crate) struct SmallValues {
    /// Addresses that have memory: at first the stack of the caller.
    known: [Range<usize>; 2],
}

impl SmallValues {
    /// For a call that the program makes from a frame above this one.
    #[inline]
    pub(crate) fn new() -> Self {
        let here = 0_u8;
        let (here, stack) = ((&raw const here).addr(), thread_stack::of_this_thread());
        // A program that runs on another stack, such as that of a coroutine, is not within the thread's.
        let above = if stack.contains(&here) { here..stack.end } else { 0..0 };
        Self { known: [above, 0..0] }
    }

    /// Copies bytes of the program into a place of ours. An address without memory is an error.
    #[inline]
    pub(crate) fn fetch(&mut self, from: usize, into: &mut [u8]) -> Answer {
        if !self.is_known(from, into.len()) {
            return self.fetch_unknown(from, into);
        }
        let from = from as *const u8;
        // SAFETY: all bytes have memory: they are in frames of callers of this function, which stay while it runs, or below the break of the process, or the
        // system just read their pages for us. A program that takes memory away while a call uses it breaks the rules of the API, with any driver.
        unsafe {
            // Most values are of one of these sizes, for which the compiler needs no call.
            match into.len() {
                4 => into.copy_from_slice(&from.cast::<[u8; 4]>().read()),
                8 => into.copy_from_slice(&from.cast::<[u8; 8]>().read()),
                bytes => std::ptr::copy(from, into.as_mut_ptr(), bytes),
            }
        }
        Ok(())
    }

    /// The same for the first bytes of a range.
    #[cold]
    fn fetch_unknown(&mut self, from: usize, into: &mut [u8]) -> Answer {
        let end = from.checked_add(into.len()).ok_or(Code::INVALID_VALUE)?;
        if from == 0 {
            return if into.is_empty() { Ok(()) } else { Err(Code::INVALID_VALUE) };
        }
        match self.look(from, end) {
            Some(true) if self.is_known(from, into.len()) => self.fetch(from, into),
            Some(false) => Err(Code::INVALID_VALUE),
            _ => fetch_slice(from, into),
        }
    }

    /// Copies addresses that lie one after the other.
    #[inline]
    pub(crate) fn fetch_addresses(&mut self, from: usize, into: &mut [usize]) -> Answer {
        if !self.is_known(from, size_of_val(into)) {
            return self.fetch_unknown_addresses(from, into);
        }
        for (index, address) in into.iter_mut().enumerate() {
            // SAFETY: all bytes have memory, as in `fetch`.
            *address = unsafe { (from as *const usize).wrapping_add(index).read_unaligned() };
        }
        Ok(())
    }

    /// The same for the first bytes of a range.
    #[cold]
    fn fetch_unknown_addresses(&mut self, from: usize, into: &mut [usize]) -> Answer {
        let bytes = size_of_val(into);
        let end = from.checked_add(bytes).filter(|_| from != 0);
        if end.is_some_and(|end| self.look(from, end) == Some(true)) && self.is_known(from, bytes) {
            return self.fetch_addresses(from, into);
        }
        for (index, address) in into.iter_mut().enumerate() {
            let mut bytes = [0; size_of::<usize>()];
            self.fetch(from.wrapping_add(index * size_of::<usize>()), &mut bytes)?;
            *address = usize::from_ne_bytes(bytes);
        }
        Ok(())
    }

    #[inline]
    fn is_known(&self, from: usize, bytes: usize) -> bool {
        let holds = |known: &Range<usize>| {
            // The null address is in no range.
            from >= known.start && from <= known.end && bytes <= known.end - from && from != 0
        };
        let [newest, older] = &self.known;
        holds(newest) || holds(older)
    }

    /// Whether all bytes of a range have memory; nothing if the system does not say.
    fn look(&mut self, from: usize, end: usize) -> Option<bool> {
        if let Some(data) = data_segment().filter(|data| data.start <= from && end <= data.end) {
            self.remember(data);
            return Some(true);
        }
        let first = from & !(PAGE_BYTES - 1);
        for page in (first..end).step_by(PAGE_BYTES) {
            if !is_readable(page)? {
                return Some(false);
            }
        }
        self.remember(first..end.checked_next_multiple_of(PAGE_BYTES)?);
        Some(true)
    }

    /// Takes note of addresses that have memory, in place of those that were noted before the last ones.
    fn remember(&mut self, range: Range<usize>) {
        let [newest, older] = &mut self.known;
        *older = std::mem::replace(newest, range);
    }
}

/// The data segment as it is now, from where the system lets it begin to the break. What a program maps or protects there by itself is not looked at.
fn data_segment() -> Option<Range<usize>> {
    static START: OnceLock<Option<usize>> = OnceLock::new();
    let start = (*START.get_or_init(start_of_data))?;
    // SAFETY: a break that is moved by nothing stays where it is.
    let end = unsafe { libc::sbrk(0) }.addr();
    (start < end).then_some(start..end)
}

/// Where the data segment begins; nothing if the system does not say, or there is none.
fn start_of_data() -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[heap]"))?;
    usize::from_str_radix(line.split('-').next()?, 16).ok()
}

/// Whether a page has memory that can be read. The system reads a set of signals from its start, and then refuses what is to be done with the set.
fn is_readable(page: usize) -> Option<bool> {
    const NOTHING_TO_DO: i32 = -1;
    // SAFETY: the system checks the address, and changes nothing for an operation that there is not.
    let answered = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            NOTHING_TO_DO,
            page,
            std::ptr::null_mut::<c_void>(),
            SIGNALS_BYTES,
        )
    };
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EINVAL) if answered == -1 => Some(true),
        Some(libc::EFAULT) if answered == -1 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(from: usize) -> Answer<u64> {
        let mut bytes = [0; 8];
        SmallValues::new().fetch(from, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    #[test]
    fn values_of_the_stack_the_heap_and_statics_are_fetched() {
        static VALUE: u64 = 3;
        let (here, there) = (1_u64, Box::new(2_u64));
        let addresses = [
            std::ptr::from_ref(&here).addr(),
            std::ptr::from_ref(&*there).addr(),
            std::ptr::from_ref(&VALUE).addr(),
        ];
        assert_eq!(addresses.map(fetched), [Ok(1), Ok(2), Ok(3)]);
        let other = std::thread::spawn(move || addresses.map(fetched));
        assert_eq!(other.join().unwrap(), [Ok(1), Ok(2), Ok(3)]);
    }

    #[test]
    fn the_data_segment_is_where_the_system_says() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let Some(line) = maps.lines().find(|line| line.ends_with("[heap]")) else { return };
        let data = data_segment().unwrap();
        assert_eq!(line.split('-').next(), Some(format!("{:x}", data.start).as_str()));
        assert!(fetched(data.start).is_ok());
    }

    #[test]
    fn addresses_without_memory_are_errors_also_past_the_end_of_a_page() {
        for wild in [0, 1, 4095, 0xdead_beef, usize::MAX - 3, 1 << 63] {
            assert_eq!(fetched(wild), Err(Code::INVALID_VALUE), "{wild:#x}");
        }
        // SAFETY: new memory of two pages, of which the second is given back at once.
        let first = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(std::ptr::null_mut(), 2 * PAGE_BYTES, libc::PROT_READ, flags, -1, 0);
            libc::munmap(pages.wrapping_byte_add(PAGE_BYTES), PAGE_BYTES);
            pages.addr()
        };
        assert_eq!(fetched(first + PAGE_BYTES - 8), Ok(0));
        assert_eq!(fetched(first + PAGE_BYTES - 7), Err(Code::INVALID_VALUE));
        assert_eq!(fetched(first + PAGE_BYTES), Err(Code::INVALID_VALUE));
    }
}
