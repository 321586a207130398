//! The trait by which the client reports changed objects to the code that keeps a standby worker up to date.

/// Follows the objects of a client, so that a standby has them too.
pub(crate) trait StandbyHook: Send + Sync {
    /// The client made, changed or destroyed an object. Costs a counter unless the follower sleeps.
    fn objects_changed(&self);

    /// Waits until the standby, if there is one, has followed every change made before this call.
    fn catch_up(&self);
}
