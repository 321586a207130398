//! The functions of the API, one file for each area, and the state that they share.
//!
//! `process_state` holds the devices and all tables; `context` and `stream_order` a context with the order of its streams; `memory_map` says which memory
//! lies at an address, `mapped_pages` is memory that host and device share, `copy_rows` is what every copy becomes; `value_kernels` writes values to memory and waits for them. The other files are areas of the API.

mod address_range;
mod capture;
mod captures;
mod context;
mod contexts;
mod copies;
mod copy_rows;
mod device_attributes;
mod devices;
mod events;
mod fills;
mod functions;
mod graph_any_node;
mod graph_batch_nodes;
mod graph_body;
mod graph_edges;
mod graph_event_nodes;
mod graph_memory;
mod graph_memory_nodes;
mod graph_nodes;
mod graph_parameters;
mod graph_picture;
mod graph_streams;
mod graph_updates;
mod graph_work;
mod graphs;
mod host_callbacks;
mod initialization;
mod interprocess;
mod interprocess_event;
mod joined_ptx;
mod launch;
mod libraries;
mod link;
mod mapped_pages;
mod memory;
mod memory_map;
mod modules;
mod occupancy;
mod physical_memory;
mod pinned_memory;
mod pointer_attributes;
mod pools;
mod primary_contexts;
mod proc_address;
pub(crate) mod process_state;
mod stream_order;
mod streams;
mod tensor_maps;
mod user_objects;
mod value_kernels;
mod value_operations;
mod virtual_memory;
