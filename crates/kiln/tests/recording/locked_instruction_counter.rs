//! Looks at the instructions of some work: those that lock the memory bus, by which a lock of the standard library is taken, those that read a clock, and where they
//! are in the program. Nothing tells a program about them. So a child does its work instruction by instruction between two marks, and its parent looks at each.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_long, c_void};
use std::process::Child;

/// How a child ends that may not be looked at.
const REFUSED: i32 = 77;
/// Signals that mark where the work begins and ends.
const BEGIN: c_int = 10;
const END: c_int = 12;

const TRACE_ME: c_int = 0;
const PEEK_TEXT: c_int = 1;
const PEEK_USER: c_int = 3;
const CONTINUE: c_int = 7;
const SINGLE_STEP: c_int = 9;
/// Where the address of the next instruction is among the registers.
const NEXT_INSTRUCTION: usize = 16 * 8;
const WAIT_FOR_THREADS: c_int = 0x4000_0000;
const TRAP: c_int = 5;

unsafe extern "C" {
    fn ptrace(request: c_int, process: c_int, address: *mut c_void, data: *mut c_void) -> c_long;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn raise(signal: c_int) -> c_int;
}

/// Lets the parent look at this thread, which stops at signals from here on. Ends the process where that is not allowed.
pub(crate) fn be_looked_at() {
    // SAFETY: it takes nothing. The parent lets the thread go on.
    if unsafe { ptrace(TRACE_ME, 0, std::ptr::null_mut(), std::ptr::null_mut()) } != 0 {
        std::process::exit(REFUSED);
    }
}

/// Does work that is looked at.
pub(crate) fn marked(work: impl FnOnce()) {
    // SAFETY: the signal stops this thread, and who looks at it does not pass the signal on.
    unsafe { raise(BEGIN) };
    work();
    // SAFETY: as above.
    unsafe { raise(END) };
}

/// What was seen of a marked piece of work.
#[derive(Default, Debug)]
pub(crate) struct Seen {
    /// Instructions that lock the memory bus.
    pub(crate) locks: u64,
    /// Readings of the processor's counter, by which the system's clocks are read, too.
    pub(crate) clock_reads: u64,
    /// Calls of the system.
    pub(crate) system_calls: u64,
    /// Places of the program, from its beginning in memory.
    pub(crate) places: BTreeSet<u64>,
}

/// The marked pieces of work of a child; none if it may not be looked at.
pub(crate) fn counted(mut child: Child) -> Option<Vec<Seen>> {
    let (mut rounds, mut is_inside): (Vec<Seen>, bool) = (Vec::new(), false);
    let mut program = 0..0;
    loop {
        let mut status = 0;
        // SAFETY: the status is a place that lives until the call returns. Only this thread waits for the child.
        let stopped = unsafe { waitpid(-1, &raw mut status, WAIT_FOR_THREADS) };
        assert!(stopped > 0, "the child is gone");
        if status & 0x7f != 0x7f {
            // One of its threads has ended, or all of them.
            if stopped == child.id() as c_int {
                let code = status >> 8 & 0xff;
                // It was waited for already.
                drop(child.stdin.take());
                assert!(code == 0 || code == REFUSED, "it ended with {status:#x}");
                return (code == 0).then_some(rounds);
            }
            continue;
        }
        let signal = status >> 8 & 0xff;
        match signal {
            BEGIN => {
                rounds.push(Seen::default());
                is_inside = true;
                program = mapped(child.id());
            }
            END => is_inside = false,
            _ => {}
        }
        if is_inside {
            rounds.last_mut().unwrap().look(stopped, &program);
        }
        let request = if is_inside { SINGLE_STEP } else { CONTINUE };
        let passed_on = if matches!(signal, BEGIN | END | TRAP) { 0 } else { signal };
        // SAFETY: the thread is stopped, and this one looks at it.
        let gone_on =
            unsafe { ptrace(request, stopped, std::ptr::null_mut(), passed_on as usize as *mut c_void) };
        assert_eq!(gone_on, 0);
    }
}

/// Where the program of a process is in memory.
fn mapped(process: u32) -> std::ops::Range<u64> {
    let link = std::fs::read_link(format!("/proc/{process}/exe")).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let of_program = maps.lines().filter(|line| line.ends_with(link.to_str().unwrap()));
    let places = of_program.map(|line| {
        let (begin, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        [begin, end].map(|place| u64::from_str_radix(place, 16).unwrap())
    });
    let places: Vec<u64> = places.flatten().collect();
    *places.iter().min().unwrap()..*places.iter().max().unwrap()
}

impl Seen {
    /// Looks at the next instruction of a thread.
    fn look(&mut self, thread: c_int, program: &std::ops::Range<u64>) {
        // SAFETY: the thread is stopped, and this one looks at it; both only read.
        let (at, bytes) = unsafe {
            let at = ptrace(PEEK_USER, thread, NEXT_INSTRUCTION as *mut c_void, std::ptr::null_mut());
            (
                at as u64,
                ptrace(PEEK_TEXT, thread, at as usize as *mut c_void, std::ptr::null_mut()).to_le_bytes(),
            )
        };
        if program.contains(&at) {
            self.places.insert(at - program.start);
        }
        let is_prefix =
            |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3);
        let mut rest = bytes.iter().skip_while(|byte| is_prefix(byte));
        match [rest.next(), rest.next(), rest.next()].map(|byte| byte.copied().unwrap_or_default()) {
            [0xf0, ..] => self.locks += 1,
            // It exchanges with memory.
            [0x86 | 0x87, operands, _] if operands < 0xc0 => self.locks += 1,
            [0x0f, 0x31, _] | [0x0f, 0x01, 0xf9] => self.clock_reads += 1,
            [0x0f, 0x05, _] => self.system_calls += 1,
            _ => {}
        }
    }
}
