//! Device memory of the machine: addresses, pages, blocks, and how kernels and the host reach them.

pub(crate) mod address_map;
pub(crate) mod address_space;
pub(crate) mod allocation;
pub(crate) mod heap_block;
pub(crate) mod heap_block_table;
// Mapping memory is what safe Rust cannot do; here, in `mapping` and in `page_file`.
#[allow(unsafe_code)]
pub(crate) mod host_backing;
pub(crate) mod host_memory;
#[cfg(unix)]
#[allow(unsafe_code)]
pub(crate) mod host_mmap;
pub(crate) mod memory_export;
pub(crate) mod memory_identity;
pub(crate) mod memory_view;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) mod page_file;
#[cfg(not(target_os = "linux"))]
#[path = "memory/page_file_unsupported.rs"]
pub(crate) mod page_file;
pub(crate) mod page_file_error;
pub(crate) mod pages;
pub(crate) mod physical_memory;
pub(crate) mod reached_memory;
pub(crate) mod scalar;
pub(crate) mod thread_memory_access;
