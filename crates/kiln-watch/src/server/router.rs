//! What is answered to which request.

use serde_json::json;

use super::access_token::AccessToken;
use super::request::{Refusal, Request};
use super::response::Response;
use crate::page::{ICON, page};
use crate::timeline_tile::TileRequest;
use crate::watch_error::WatchError;
use crate::watched_recording::WatchedRecording;

/// The most points of a memory curve.
const MAX_POINTS: usize = 2048;

/// Answers requests.
pub(crate) struct Router {
    pub(crate) recording: std::sync::Arc<WatchedRecording>,
    pub(crate) token: AccessToken,
    pub(crate) port: u16,
}

impl Router {
    /// Answers a request.
    pub(crate) fn answer(&self, request: &Request) -> Response {
        if !self.is_own_host(&request.host) {
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

    /// Names by which a browser on this machine reaches the page. A page of another site that resolves its name to this machine has
    /// another one.
    fn is_own_host(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            // Browsers leave out the port of the protocol.
            None => (host, Some(80)),
        };
        port == Some(self.port) && ["127.0.0.1", "localhost"].iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn answer_to(&self, what: &str, request: &Request) -> Result<Response, Refusal> {
        let recording = &self.recording;
        Ok(match what {
            "" => self.page(),
            "icon.svg" => Response::svg(ICON),
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
            "explain" => answered(recording.explain().map(|text| json!({ "text": text }))),
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
