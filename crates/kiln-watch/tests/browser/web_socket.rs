//! A web socket, as far as DevTools need one: texts both ways.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A connection.
pub(crate) struct WebSocket {
    stream: TcpStream,
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const LAST: u8 = 0x80;

impl WebSocket {
    /// Connects to a path on a port of this machine.
    pub(crate) fn connect(port: u16, path: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: a2lsbiB3YXRjaCB0ZXN0cw==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self { stream }
    }

    /// Sends a text.
    pub(crate) fn send(&mut self, text: &str) {
        self.send_frame(TEXT, text.as_bytes());
    }

    /// The next text.
    pub(crate) fn receive(&mut self) -> String {
        let mut whole = Vec::new();
        loop {
            let (first, payload) = self.frame();
            match first & 0x0f {
                PING => self.send_frame(PING + 1, &payload),
                CLOSE => panic!("the browser closed the connection"),
                _ => {
                    whole.extend(payload);
                    if first & LAST != 0 {
                        return String::from_utf8(whole).unwrap();
                    }
                }
            }
        }
    }

    /// Clients mask what they send; a mask of zeros leaves it as it is.
    fn send_frame(&mut self, kind: u8, payload: &[u8]) {
        let mut frame = vec![LAST | kind];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..0x1_0000 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.stream.write_all(&frame).unwrap();
    }

    fn frame(&mut self) -> (u8, Vec<u8>) {
        let [first, length] = self.bytes::<2>();
        let length = match length & 0x7f {
            126 => u64::from(u16::from_be_bytes(self.bytes())),
            127 => u64::from_be_bytes(self.bytes()),
            short => u64::from(short),
        };
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).unwrap();
        (first, payload)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }
}
