//! Checks that watch the threads of a launch: races, copies that are not done, and memory that is read as a constant.

mod access_mark;
mod access_order;
mod async_copies;
mod block_knowledge;
mod bulk_copies;
mod cluster_clocks;
mod cluster_exit;
mod constant_reads;
mod fence_snapshot;
mod generic_writes;
mod happens_before;
mod last_poll;
mod meetings;
mod page_hasher;
mod page_table;
mod published;
mod race_rule;
mod races;
mod row_touch;
mod shadow_cell;
mod shadow_page;
mod shared_page;
mod sync_location;
mod thread_order;
mod value_rule;
mod vector_clock;
mod warp_epochs;

pub(crate) use access_mark::Touching;
pub use access_order::RaceCause;
pub(crate) use async_copies::{Copies, Copy};
pub(crate) use bulk_copies::{BulkEnd, PendingBulk, PendingMatrix};
pub(crate) use constant_reads::{ConstantConflict, ConstantTouch};
pub(crate) use generic_writes::GenericWrite;
pub(crate) use happens_before::Clocks;
pub(crate) use page_hasher::PageHasher;
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public with the feature only"))]
pub use race_rule::RaceRule;
pub(crate) use race_rule::Rules;
pub(crate) use races::{BlockRaces, Conflict, LaunchRaces, Touch};
pub(crate) use sync_location::{Acquired, Locations};
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public with the feature only"))]
pub use value_rule::ValueRule;
pub(crate) use value_rule::ValueRules;
pub(crate) use vector_clock::{Clock, Time, joined_options};
