//! The shared library exports every function of its list, and little else.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise, and says why")]

use std::collections::BTreeSet;
use std::path::PathBuf;

/// The shared library, which cargo builds for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = [test.parent().unwrap().to_owned(), test.parent().unwrap().parent().unwrap().to_owned()];
    let found = folders.iter().map(|folder| folder.join("libkiln_shim.so")).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("libkiln_shim.so is not in {folders:?}"))
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |number, digit| number << 8 | usize::from(*digit))
}

/// The names of the dynamic symbols that a 64-bit ELF file defines.
fn defined_symbols(file: &[u8]) -> BTreeSet<String> {
    const DYNAMIC_SYMBOLS: usize = 11;
    let (table, entry, count) = (number(file, 40, 8), number(file, 58, 2), number(file, 60, 2));
    let section = |index: usize| &file[table + index * entry..table + (index + 1) * entry];
    let symbols = (0..count).map(section).find(|section| number(section, 4, 4) == DYNAMIC_SYMBOLS).unwrap();
    let names = section(number(symbols, 40, 4));
    let names = &file[number(names, 24, 8)..number(names, 24, 8) + number(names, 32, 8)];
    let entries = file[number(symbols, 24, 8)..].chunks(24).take(number(symbols, 32, 8) / 24);
    let defined = entries.filter(|entry| number(entry, 6, 2) != 0);
    let name = |entry: &[u8]| {
        let rest = &names[number(entry, 0, 4)..];
        String::from_utf8_lossy(rest.split(|byte| *byte == 0).next().unwrap()).into_owned()
    };
    defined.map(name).collect()
}

#[test]
fn every_function_is_exported() {
    let symbols = defined_symbols(&std::fs::read(library()).unwrap());
    let names: Vec<&str> = kiln_shim::exported_names().collect();
    let missing: Vec<&&str> = names.iter().filter(|name| !symbols.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(names.len() > 500, "{} names", names.len());
    // What CUDA 13.0 added, what it took away, and the forms with the stream of a thread.
    for name in ["cuCtxGetDevice_v2", "cuCtxCreate_v2", "cuMemcpyBatchAsync_v2", "cuLaunchKernel_ptsz"] {
        assert!(symbols.contains(name), "{name}");
    }
}

#[test]
fn nothing_else_is_exported() {
    let symbols = defined_symbols(&std::fs::read(library()).unwrap());
    let is_ours = |name: &&String| name.starts_with("cu") || name.starts_with("nvml");
    let others: Vec<&String> = symbols.iter().filter(|name| !is_ours(name)).collect();
    assert!(others.is_empty(), "{others:?}");
}
