//! A client that sends any bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use kiln_watch::{WatchOptions, WatchServer};
use serde_json::Value;

/// A served recording.
pub(crate) struct Served {
    pub(crate) server: WatchServer,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Served {
    pub(crate) fn new(file: &Path) -> Self {
        let server = WatchServer::start(file, &WatchOptions::default()).unwrap();
        server.recording().read_all().unwrap();
        Self::of(server)
    }

    pub(crate) fn of(server: WatchServer) -> Self {
        let rest = server.url().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.split_once('/').unwrap();
        let (port, token) = (port.parse().unwrap(), token.trim_end_matches('/').to_owned());
        Self { server, port, token }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes, and reads until the server closes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Option<Answer> {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        parsed(&answer)
    }

    /// Asks for something below the token.
    pub(crate) fn ask(&self, what: &str) -> Answer {
        self.ask_as(&format!("127.0.0.1:{}", self.port), &format!("/{}/{what}", self.token))
    }

    /// Asks for a path, with a host.
    pub(crate) fn ask_as(&self, host: &str, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
            .unwrap()
    }
}

/// An answer of which at least the head has come.
pub(crate) fn parsed(answer: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
