//! Whether this machine has the memory for the arrays of a launch.
//!
//! The system gives memory page by page and ends a process that uses more than there is. So a launch that cannot fit is refused before anything is read or run.

use std::path::Path;

use crate::argument_spec::Spec;
use crate::failure::Failure;
use crate::table::bytes;

/// Refuses arrays that need more memory than is available. `results` is how many copies of a result are kept at a time.
pub(crate) fn check_memory(specs: &[Spec], results: u64) -> Result<(), Failure> {
    match available_bytes() {
        Some(available) => fits(need_bytes(specs, results), available),
        None => Ok(()),
    }
}

fn fits(need: u64, available: u64) -> Result<(), Failure> {
    if need <= available {
        return Ok(());
    }
    let (need, available) = (bytes(need), bytes(available));
    let message = format!(
        "the arrays of this launch need about {need} of this machine's memory with their copies on the simulated device, and {available} are available"
    );
    Err(Failure::refused(message).next(
        "give smaller arrays, and scratch: for those that no caller reads; `kiln run --device cuda` uses a GPU's memory",
    ))
}

/// The memory that arrays and their copies on the device take. Scratch memory takes what the kernel uses.
fn need_bytes(specs: &[Spec], results: u64) -> u64 {
    let of_one = |spec: &Spec| match spec {
        Spec::Out { start: crate::argument_spec::Start::Scratch, .. } => 0,
        Spec::Out { element, len, .. } => len.saturating_mul(element.bytes()).saturating_mul(1 + results),
        Spec::Texture { from, .. } => file_bytes(from).saturating_mul(2),
        Spec::Surface { from, .. } => file_bytes(from).saturating_mul(2 + results),
        Spec::In { from } => file_bytes(from).saturating_mul(2),
        Spec::InOut { from, .. } => file_bytes(from).saturating_mul(2 + results),
        Spec::Struct(fields) => need_bytes(fields, results),
        Spec::Null | Spec::Value { .. } | Spec::Bytes(_) => 0,
    };
    specs.iter().map(of_one).fold(0, u64::saturating_add)
}

/// The size of a file; one that cannot be read is told when it is.
fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// The memory that can be used without swapping, within the limit of the control group; none if the system does not tell.
fn available_bytes() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max").map(|limit| {
        // What is cached of files is given back when memory is needed.
        let cached =
            std::fs::read_to_string("/sys/fs/cgroup/memory.stat").ok().and_then(|text| field(&text, "file "));
        let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0).saturating_sub(cached.unwrap_or(0));
        limit.saturating_sub(used)
    });
    machine.into_iter().chain(group).min()
}

fn mem_available(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemAvailable:").map(|kib| kib.saturating_mul(1024))
}

/// The number behind a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_arrays_are_counted() {
        let need = |texts: &[&str], results| {
            let specs: Vec<Spec> = texts.iter().map(|text| text.parse().unwrap()).collect();
            need_bytes(&specs, results)
        };
        assert_eq!(need(&["out:f32:100", "scratch:f32:1000", "f32:1", "null"], 1), 800);
        assert_eq!(need(&["struct:{zeros:u8:100,i32:1}"], 2), 300);
        assert_eq!(need(&["out:f64:18446744073709551615"], 2), u64::MAX);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert!(fits(1 << 20, 1 << 20).is_ok());
        let told = fits(3 << 30, 2 << 30).unwrap_err().to_string();
        assert!(told.contains("about 3 GiB") && told.contains("2 GiB are available; give smaller"), "{told}");
    }
}
