//! What is answered to which request.

use serde_json::json;

use super::access_token::AccessToken;
use super::request::{Refusal, Request};
use super::response::Response;
use crate::block_picture::BlockQuery;
use crate::page::{ICON, page};
use crate::timeline_tile::TileRequest;
use crate::watch_error::WatchError;
use crate::watched_job::WatchedJob;

/// The most points of a memory curve.
const MAX_POINTS: usize = 2048;

/// Answers requests.
pub(crate) struct Router {
    pub(crate) job: std::sync::Arc<WatchedJob>,
    pub(crate) token: AccessToken,
    pub(crate) port: u16,
}

impl Router {
    /// Answers a request.
    pub(crate) fn answer(&self, request: &Request) -> Response {
        if !is_own_host(&request.host, self.port) {
            return Response::refused(Refusal(403, "this is no address of the page"));
        }
        // "/TOKEN/what"
        let mut parts = request.path.splitn(3, '/').skip(1);
        let (token, what) = (parts.next().unwrap_or_default(), parts.next());
        if !self.token.is(token) {
            return Response::refused(Refusal(403, "the address lacks the token that `kiln watch` printed"));
        }
        match what {
            Some(what) => self.answer_to(what, request).unwrap_or_else(Response::refused),
            None => Response::refused(Refusal(404, "the page's address ends with a slash")),
        }
    }

    fn answer_to(&self, what: &str, request: &Request) -> Result<Response, Refusal> {
        let number = if request.value("r").is_some() { request.number("r")? } else { 0 };
        let recording = self.job.recording(number).ok_or(Refusal(404, "there is no such recording"))?;
        Ok(match what {
            "" => self.page(),
            "icon.svg" => Response::svg(ICON),
            "job" => Response::json(&self.job.state()),
            "collectives" => {
                Response::json(&self.job.collectives(request.number("begin")?, request.number("end")?))
            }
            "blocks" => answered(recording.blocks(BlockQuery {
                device: request.number("device")?,
                begin_ns: request.number("begin")?,
                end_ns: request.number("end")?,
                low: request.number("low")?,
                high: request.number("high")?,
            })),
            "state" => Response::json(&recording.state()),
            "names" => Response::json(&recording.names(request.number("first")?)),
            "tile" => answered(recording.tile(TileRequest {
                level: request.number("level")?,
                index: request.number("index")?,
                first_row: request.number("first")?,
                rows: request.number("rows")?,
            })),
            "work" => answered(recording.work(request.number("row")?, request.number("number")?)),
            "find" => Response::json(&recording.find(text(request)?)),
            "next" => {
                let is_back = request.value("back") == Some("1");
                answered(recording.next(text(request)?, request.number("from")?, is_back))
            }
            "memory" => {
                let (begin, end) = (request.number("begin")?, request.number("end")?);
                Response::json(&recording.memory(
                    begin,
                    end,
                    request.number::<usize>("points")?.min(MAX_POINTS),
                ))
            }
            "explain" => answered(self.job.explain().map(|text| json!({ "text": text }))),
            _ => return Err(Refusal(404, "there is nothing of this name")),
        })
    }

    fn page(&self) -> Response {
        match AccessToken::random() {
            Ok(nonce) => {
                let nonce = nonce.to_string();
                Response::page(page(&nonce), &nonce)
            }
            Err(_) => Response::refused(Refusal(500, "there are no random numbers")),
        }
    }
}

fn text(request: &Request) -> Result<&str, Refusal> {
    request.value("q").filter(|text| !text.is_empty()).ok_or(Refusal(400, "a name to search for is missing"))
}

fn answered(result: Result<impl serde::Serialize, WatchError>) -> Response {
    match result {
        Ok(value) => Response::json(&value),
        Err(WatchError::Unknown(what)) => Response::failed(404, what),
        Err(error) => Response::failed(500, &error.to_string()),
    }
}

/// Names by which a browser on this machine reaches the page at a port. A page of another site that resolves its name to this machine has
/// another one.
fn is_own_host(host: &str, own_port: u16) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        // Browsers leave out the port of the protocol.
        None => (host, Some(80)),
    };
    port == Some(own_port) && ["127.0.0.1", "localhost"].iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_the_protocol_may_be_left_out_and_no_other() {
        for host in ["127.0.0.1", "localhost", "LOCALHOST", "127.0.0.1:80", "localhost:80"] {
            assert!(is_own_host(host, 80), "{host}");
            assert!(!is_own_host(host, 7007), "{host}");
        }
        for host in ["127.0.0.1:7007", "localhost:7007"] {
            assert!(is_own_host(host, 7007), "{host}");
            assert!(!is_own_host(host, 80), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "127.0.0.1:",
            "[::1]",
            "localhost:080x",
            "0.0.0.0:80",
        ] {
            assert!(!is_own_host(host, 80), "{host}");
        }
    }
}
