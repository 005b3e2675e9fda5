//! Notices of Google Cloud: the `preempted` item of the metadata service.

use futures::{FutureExt as _, future::BoxFuture};
use http::Method;
use jiff::{SignedDuration, Timestamp};

use crate::{
    metadata::Metadata,
    notice::{Kind, Notice, origin},
    source::{Looked, Source},
    trouble::Trouble,
};

/// Where Google Cloud says that it takes the instance back.
pub const PREEMPTED: &str = "/computeMetadata/v1/instance/preempted";
/// A header that every question has, and every true answer.
pub const FLAVOR: (&str, &str) = ("metadata-flavor", "Google");
/// From the notice until the power is cut.
pub const NOTICE: SignedDuration = SignedDuration::from_secs(30);

const WHAT: &str = "instance/preempted";

/// Whether the instance is taken back. Only a true answer of the metadata service counts.
pub fn preempted(status: u16, flavor: Option<&str>, body: &[u8]) -> Result<bool, Trouble> {
    if status != 200 {
        return Err(Trouble::Status { what: WHAT, status });
    }
    if flavor != Some(FLAVOR.1) {
        return Err(Trouble::unreadable(WHAT, "it is not from Google's metadata service"));
    }
    match body.trim_ascii() {
        b"TRUE" => Ok(true),
        b"FALSE" => Ok(false),
        _ => Err(Trouble::unreadable(WHAT, "it is neither TRUE nor FALSE")),
    }
}

/// The source of a Google Cloud instance.
pub struct GcpSource {
    metadata: Metadata,
    /// The item says whether, not when.
    seen: Option<Timestamp>,
}

impl GcpSource {
    /// The instance whose metadata service this is.
    pub fn new(metadata: Metadata) -> Self {
        Self { metadata, seen: None }
    }

    async fn notice(&mut self, now: Timestamp) -> Result<Option<Notice>, Trouble> {
        let answer = self.metadata.ask(WHAT, Method::GET, PREEMPTED, &[FLAVOR]).await?;
        let flavor = answer.headers.get(FLAVOR.0).and_then(|flavor| flavor.to_str().ok());
        if !preempted(answer.status, flavor, &answer.body)? {
            return Ok(None);
        }
        let seen = *self.seen.get_or_insert(now);
        Ok(Some(Notice {
            kind: Kind::Termination,
            deadline: Some(seen + NOTICE),
            id: format!("preempted-{seen}"),
            origin: origin::GCP_PREEMPTED,
            revocable: false,
        }))
    }
}

impl Source for GcpSource {
    fn look(&mut self, now: Timestamp) -> BoxFuture<'_, Looked> {
        async move {
            let mut looked = Looked::default();
            looked.add(self.notice(now).await);
            looked
        }
        .boxed()
    }

    fn cloud(&self) -> &'static str {
        "gcp"
    }
}
