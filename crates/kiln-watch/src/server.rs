//! The page's server: HTTP/1.1 on the loopback interface, for one user.

mod access_token;
mod connections;
mod request;
mod response;
mod router;
mod session;
mod watch_server;

pub use watch_server::{ExpectedFile, WatchOptions, WatchServer};
