//! Checks that watch the threads of a launch: races, copies that are not done, and memory that is read as a constant.

mod cell;
mod clock;
mod clocks;
mod constant_reads;
mod copies;
mod intervals;
mod last_poll;
mod mark;
mod order;
mod page;
mod races;
mod rule;
mod sync;
mod sync_location;
mod value_rule;

pub(crate) use constant_reads::{ConstantConflict, ConstantTouch};
pub(crate) use copies::Copy;
pub(crate) use mark::Touching;
pub use order::RaceCause;
pub(crate) use races::{BlockRaces, Conflict, LaunchRaces, Touch};
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public with the feature only"))]
pub use rule::RaceRule;
pub(crate) use rule::Rules;
pub(crate) use sync_location::Locations;
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public with the feature only"))]
pub use value_rule::ValueRule;
pub(crate) use value_rule::ValueRules;
