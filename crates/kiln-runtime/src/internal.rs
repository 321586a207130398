//! What the crates above need and users do not. It is no part of the public interface and changes without notice.

pub use crate::buffer::buffer_bytes::BufferBytes;
pub use crate::buffer::gpu_ref::weak_buffer::{WeakBuffer, is_whole_block};
pub use crate::buffer::host_vec::zeroed_vec;
pub use crate::buffer::last_write::note_overwritten;
pub use crate::buffer::pattern::pattern;
pub use crate::buffer::try_reserve::{copied, reserve};
pub use crate::buffer::usable::{
    check_ready, check_stream, check_usable, is_same_runtime, runtime_of, told_of_loss,
};
pub use crate::code::library_fingerprint::cublaslt_identity;
pub use crate::code::module_builder::{count_found, ptx_key};
pub use crate::findings::finding_file::{FINDINGS_FILE_VARIABLE, note_finding};
pub use crate::findings::named_call::CallScope;
pub use crate::graph::recorded_work::RecordedWork;
pub use crate::launch::byte_arguments::pass_bytes;
pub use crate::launch::called_launch::{mark_earlier_work, submit_called_at};
pub use crate::launch::library_launch::submit_in_call;
pub use crate::launch::module::on_last_drop;
pub use crate::recovery::expendable_buffers::mark_workspace;
pub use crate::runtime::ended_work::{EndedWork, end_work};
pub use crate::runtime::external_state::FollowedState;
pub use crate::runtime::memory_pressure::{current_generation, pressure_policy};
pub use crate::runtime::named_work::in_call;
#[cfg(feature = "mutations")]
pub use crate::runtime::recording::switch_reads::recording_switch_reads;
pub use crate::runtime::recording::work_context::{
    CollectiveLabel, RecordedMoment, WorkContext, as_collective, called_from, recorded_moment,
};
pub use crate::runtime::worker_process::is_in_worker;
pub use crate::wake::reply_slot::ReplySlot;
pub use crate::wake::wake;
pub use kiln_order::StreamKey;
