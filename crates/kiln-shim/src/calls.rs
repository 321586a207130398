//! The functions of the API, one file for each area, and the state that they share.
//!
//! `process_state` holds the devices and all tables; `context` and `stream_order` a context with the order of its streams; `memory_map` says which memory
//! lies at an address, `mapped_pages` is memory that host and device share, `copy_rows` is what every copy becomes. The other files are areas of the API.

mod capture;
mod context;
mod contexts;
mod copies;
mod copy_rows;
mod device_attributes;
mod devices;
mod events;
mod fills;
mod functions;
mod graphs;
mod host_callbacks;
mod initialization;
mod launch;
mod libraries;
mod link;
mod mapped_pages;
mod memory;
mod memory_map;
mod modules;
mod occupancy;
mod pinned_memory;
mod pointer_attributes;
mod pools;
mod primary_contexts;
mod proc_address;
mod process_state;
mod stream_order;
mod streams;
