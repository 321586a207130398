//! A request, read from bytes that may be anything.

/// The most bytes of a request's head.
pub(crate) const MAX_HEAD_BYTES: usize = 8 << 10;
/// The most fields of a head.
const MAX_FIELDS: usize = 64;

/// A request without a body.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Request {
    pub(crate) is_head: bool,
    /// The path, as it was sent.
    pub(crate) path: String,
    /// The names and values behind the `?`, decoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) host: String,
    pub(crate) keeps_alive: bool,
}

/// Why a request is refused: a status and what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal(pub(crate) u16, pub(crate) &'static str);

/// Where the head ends that some bytes begin with: behind the empty line.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

impl Request {
    /// Reads a head, which ends with an empty line.
    ///
    /// # Errors
    /// Whatever is not a GET or HEAD without a body.
    pub(crate) fn read(head: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(head).map_err(|_| Refusal(400, "the request is no text"))?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some(version), None) = (method, target, version, words.next())
        else {
            return Err(Refusal(400, "the first line is no request"));
        };
        let keeps_alive = match version {
            "HTTP/1.1" => true,
            "HTTP/1.0" => false,
            _ => return Err(Refusal(505, "only HTTP/1.1 is spoken here")),
        };
        let is_head = match method {
            "GET" => false,
            "HEAD" => true,
            _ => return Err(Refusal(405, "only GET and HEAD are answered")),
        };
        if !target.starts_with('/') || target.chars().any(|c| c.is_control()) {
            return Err(Refusal(400, "the target is no path"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query_of(query).ok_or(Refusal(400, "the query is no text"))?;
        let mut request = Self { is_head, path: path.to_owned(), query, keeps_alive, host: String::new() };
        request.read_fields(lines)?;
        Ok(request)
    }

    /// The value of a name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The number of a name.
    ///
    /// # Errors
    /// A value that is no number, or is not there.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, Refusal> {
        self.value(name)
            .and_then(|value| value.parse().ok())
            .ok_or(Refusal(400, "a number is missing or wrong"))
    }

    fn read_fields<'t>(&mut self, lines: impl Iterator<Item = &'t str>) -> Result<(), Refusal> {
        let mut hosts = 0;
        for (count, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
            if count >= MAX_FIELDS {
                return Err(Refusal(431, "there are too many fields"));
            }
            let (name, value) = line.split_once(':').ok_or(Refusal(400, "a field has no name"))?;
            if name.is_empty() || name.contains([' ', '\t']) {
                return Err(Refusal(400, "a field has no name"));
            }
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "host" => {
                    self.host = value.to_owned();
                    hosts += 1;
                }
                "connection" if value.eq_ignore_ascii_case("close") => self.keeps_alive = false,
                "content-length" if value != "0" => return Err(Refusal(413, "no body is taken")),
                "transfer-encoding" => return Err(Refusal(413, "no body is taken")),
                _ => {}
            }
        }
        if hosts == 1 { Ok(()) } else { Err(Refusal(400, "there must be one Host")) }
    }
}

/// The names and values of a query; none if they are no text.
fn query_of(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(name)?, decoded(value)?))
        })
        .collect()
}

/// A text without its percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let value = digit(digits[0])? * 16 + digit(digits[1])?;
                u8::try_from(value).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request, u16> {
        Request::read(text.as_bytes()).map_err(|Refusal(status, _)| status)
    }

    #[test]
    fn a_request_is_read() {
        let request =
            read("GET /a/find?q=gemm%20a+b&from=7 HTTP/1.1\r\nHost: x:1\r\nConnection: close\r\n\r\n");
        let request = request.unwrap();
        assert_eq!((request.path.as_str(), request.host.as_str()), ("/a/find", "x:1"));
        assert_eq!((request.value("q"), request.number::<u64>("from")), (Some("gemm a b"), Ok(7)));
        assert!(!request.keeps_alive && !request.is_head);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (status, head) in [
            (400, "\r\n\r\n"),
            (400, "GET /\r\n\r\n"),
            (400, "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n"),
            (400, "GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
            (400, "GET /?a=%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET /?a=%f HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET /?a=%ff HTTP/1.1\r\nHost: a\r\n\r\n"),
            (400, "GET / HTTP/1.1\r\nHost a\r\n\r\n"),
            (405, "POST / HTTP/1.1\r\nHost: a\r\n\r\n"),
            (505, "GET / HTTP/2\r\nHost: a\r\n\r\n"),
            (413, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
            (413, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ] {
            assert_eq!(read(head).map(|_| ()), Err(status), "{head:?}");
        }
        let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS));
        assert_eq!(read(&many).map(|_| ()), Err(431));
    }
}
