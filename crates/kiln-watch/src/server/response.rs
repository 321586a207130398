//! An answer.

use serde::Serialize;

use super::request::Refusal;

/// An answer.
pub(crate) struct Response {
    pub(crate) status: u16,
    kind: &'static str,
    body: Vec<u8>,
    /// What the page may load; a page has a nonce for its parts.
    policy: String,
}

/// What anything but the page may load.
const NO_PARTS: &str = "default-src 'self'; frame-ancestors 'none'";

impl Response {
    /// The page, whose scripts and styles bear this nonce.
    pub(crate) fn page(text: String, nonce: &str) -> Self {
        let policy = format!(
            "default-src 'self'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        Self { status: 200, kind: "text/html; charset=utf-8", body: text.into_bytes(), policy }
    }

    /// A picture.
    pub(crate) fn svg(text: &str) -> Self {
        Self::plain(200, "image/svg+xml", text.as_bytes().to_vec())
    }

    /// Data.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::plain(200, "application/json", body),
            Err(_) => Self::refused(Refusal(500, "the answer cannot be written")),
        }
    }

    /// What is wrong with a request.
    pub(crate) fn refused(Refusal(status, what): Refusal) -> Self {
        Self::plain(status, "text/plain; charset=utf-8", format!("{what}\n").into_bytes())
    }

    /// What is wrong with the recording.
    pub(crate) fn failed(status: u16, what: &str) -> Self {
        Self::plain(status, "text/plain; charset=utf-8", format!("{what}\n").into_bytes())
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self, keeps_alive: bool, is_head: bool) -> Vec<u8> {
        let connection = if keeps_alive { "keep-alive" } else { "close" };
        let allow = if self.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let mut bytes = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {connection}\r\nContent-Security-Policy: {}\r\n{allow}\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\r\n",
            self.status,
            phrase(self.status),
            self.kind,
            self.body.len(),
            self.policy
        )
        .into_bytes();
        if !is_head {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }

    fn plain(status: u16, kind: &'static str, body: Vec<u8>) -> Self {
        Self { status, kind, body, policy: NO_PARTS.to_owned() }
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
