//! Tokens of the instance metadata service.

use std::time::Duration;

use bytes::Bytes;
use fleetwright_clock::Clock;
use http::Method;
use jiff::Timestamp;

use crate::{metadata::Metadata, trouble::Trouble};

/// Where tokens come from.
pub const TOKEN_PATH: &str = "/latest/api/token";
/// How long a token is wanted for, and how long it is given for.
pub const TTL_HEADER: &str = "x-aws-ec2-metadata-token-ttl-seconds";
/// The token.
pub const TOKEN_HEADER: &str = "x-aws-ec2-metadata-token";

/// The longest that EC2 gives.
const TTL: &str = "21600";
/// A token that is about to end is not used any more.
const MARGIN: Duration = Duration::from_secs(15);
const WHAT: &str = "api/token";

/// What to do with an answer to a question with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It is an answer.
    Use,
    /// The token is stale: ask for another, and once more.
    Refresh,
}

/// What to do with an answer; a new token is asked for once.
pub fn after_answer(status: u16, refreshed: bool) -> After {
    if status == 401 && !refreshed { After::Refresh } else { After::Use }
}

/// The token in an answer, and for how long it is good. There is no way without one: version 1
/// of the service is not used.
pub fn token(status: u16, ttl: Option<&str>, body: &[u8]) -> Result<(String, Duration), Trouble> {
    if status != 200 {
        return Err(Trouble::Status { what: WHAT, status });
    }
    let text = std::str::from_utf8(body).map_err(|error| Trouble::unreadable(WHAT, error))?.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Trouble::unreadable(WHAT, "it is no token"));
    }
    let seconds = ttl.and_then(|ttl| ttl.trim().parse().ok()).or_else(|| TTL.parse().ok());
    Ok((text.to_owned(), Duration::from_secs(seconds.unwrap_or_default())))
}

/// Questions with a token.
pub(super) struct Session {
    metadata: Metadata,
    clock: Clock,
    token: Option<(String, Timestamp)>,
}

impl Session {
    pub(super) fn new(metadata: Metadata, clock: Clock) -> Self {
        Self { metadata, clock, token: None }
    }

    /// Sees that there is a token.
    pub(super) async fn open(&mut self) -> Result<String, Trouble> {
        let now = self.clock.now();
        if let Some((token, until)) = &self.token
            && now + MARGIN < *until
        {
            return Ok(token.clone());
        }
        self.token = None;
        let headers = [(TTL_HEADER, TTL)];
        let answer = self.metadata.ask(WHAT, Method::PUT, TOKEN_PATH, &headers).await?;
        let ttl = answer.headers.get(TTL_HEADER).and_then(|ttl| ttl.to_str().ok());
        let (token, lasts) = token(answer.status, ttl, &answer.body)?;
        self.token = Some((token.clone(), now + lasts));
        Ok(token)
    }

    /// Status and body of an item.
    pub(super) async fn get(
        &mut self,
        what: &'static str,
        path: &str,
    ) -> Result<(u16, Bytes), Trouble> {
        let mut refreshed = false;
        loop {
            let token = self.open().await?;
            let headers = [(TOKEN_HEADER, token.as_str())];
            let answer = self.metadata.ask(what, Method::GET, path, &headers).await?;
            if after_answer(answer.status, refreshed) == After::Use {
                return Ok((answer.status, answer.body));
            }
            refreshed = true;
            self.token = None;
        }
    }
}
