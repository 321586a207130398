//! The processor's own counter of time, which costs a third of what the system's clock does.

use std::sync::OnceLock;

/// Where Linux says what it takes its own time from.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// And what it knows of the processors.
const PROCESSORS: &str = "/proc/cpuinfo";

/// Whether the counter runs at one pace on all processors, whatever they do: the system takes its own time from it.
pub(super) fn is_steady() -> bool {
    static IS_STEADY: OnceLock<bool> = OnceLock::new();
    *IS_STEADY.get_or_init(|| {
        let source = std::fs::read_to_string(CLOCK_SOURCE).unwrap_or_default();
        match source.trim() {
            "tsc" => is_there(),
            // Systems in virtual machines take it from the counter, too, with a page that says how.
            "kvm-clock" | "hyperv_clocksource_tsc_page" => is_there() && is_invariant(),
            _ => false,
        }
    })
}

/// Whether there is such a counter.
fn is_there() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri)))
}

/// Whether the processor says that its pace never changes.
fn is_invariant() -> bool {
    let processors = std::fs::read_to_string(PROCESSORS).unwrap_or_default();
    let flags = processors.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag| flags.split_whitespace().any(|known| known == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

/// The counter.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: every processor of this architecture has the instruction, and it only reads a counter; it is asked only where the system itself
    // takes its time from it, so that it is not forbidden.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) fn read() -> u64 {
    0
}
