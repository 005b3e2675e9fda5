//! Notices of Azure: the scheduled events of the metadata service.

use futures::{FutureExt as _, future::BoxFuture};
use http::Method;
use jiff::{Timestamp, fmt::rfc2822};
use serde::Deserialize;

use crate::{
    metadata::{Answer, Metadata},
    notice::{Kind, Notice, origin},
    source::{Looked, Source},
    trouble::Trouble,
};

/// Where Azure says what it plans.
pub const EVENTS: &str = "/metadata/scheduledevents?api-version=";
/// Where a virtual machine learns its own name.
pub const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
/// A header that every question has.
pub const HEADER: (&str, &str) = ("metadata", "true");

/// The version of the service that is wanted, and the one that old clouds have.
const VERSIONS: [&str; 2] = ["2024-07-09", "2020-07-01"];
const WHAT: &str = "scheduledevents";

/// The version to use, by the answer to a question in the newest.
pub fn version(status: u16) -> Result<&'static str, Trouble> {
    match status {
        200 => Ok(VERSIONS[0]),
        404 => Ok(VERSIONS[1]),
        status => Err(Trouble::Status { what: WHAT, status }),
    }
}

/// What ends the virtual machine `own`. Its neighbours are told the same events, so what names
/// only others is left out; `own` is none while the name is not known.
pub fn notices(
    status: u16,
    body: &[u8],
    own: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Notice>, Trouble> {
    if status != 200 {
        return Err(Trouble::Status { what: WHAT, status });
    }
    let document: Document =
        serde_json::from_slice(body).map_err(|error| Trouble::unreadable(WHAT, error))?;
    let mine = document.events.into_iter().filter(|event| event.names(own));
    mine.filter_map(|event| event.notice(now).transpose()).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    #[serde(default)]
    events: Vec<Planned>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Planned {
    event_id: String,
    event_type: String,
    resources: Vec<String>,
    event_status: String,
    not_before: String,
}

impl Planned {
    fn names(&self, own: Option<&str>) -> bool {
        let named = |own: &str| self.resources.iter().any(|name| name.eq_ignore_ascii_case(own));
        self.resources.is_empty() || own.is_none_or(named)
    }

    fn notice(&self, now: Timestamp) -> Result<Option<Notice>, Trouble> {
        // A recommendation counts as a termination on Azure, as it does upstream. Freezes and
        // reboots end nothing.
        let (origin, revocable) = match self.event_type.as_str() {
            "Preempt" => (origin::AZURE_PREEMPT, false),
            "SpotRebalanceRecommendation" => (origin::AZURE_REBALANCE, true),
            _ => return Ok(None),
        };
        let begun = self.event_status == "Started" || self.not_before.is_empty();
        let deadline = if begun {
            now
        } else {
            rfc2822::parse(&self.not_before)
                .map_err(|error| Trouble::unreadable(WHAT, error))?
                .timestamp()
        };
        Ok(Some(Notice {
            kind: Kind::Termination,
            deadline: Some(deadline),
            id: self.event_id.clone(),
            origin,
            revocable,
        }))
    }
}

/// The source of an Azure virtual machine.
pub struct AzureSource {
    metadata: Metadata,
    name: Option<String>,
    version: Option<&'static str>,
}

impl AzureSource {
    /// The virtual machine whose metadata service this is.
    pub fn new(metadata: Metadata) -> Self {
        Self { metadata, name: None, version: None }
    }

    async fn events(&self, version: &str) -> Result<Answer, Trouble> {
        let path = format!("{EVENTS}{version}");
        self.metadata.ask(WHAT, Method::GET, &path, &[HEADER]).await
    }

    async fn learn_name(&mut self) -> Result<(), Trouble> {
        let what = "compute/name";
        let answer = self.metadata.ask(what, Method::GET, NAME, &[HEADER]).await?;
        if answer.status != 200 {
            return Err(Trouble::Status { what, status: answer.status });
        }
        let name = std::str::from_utf8(&answer.body);
        let name = name.map_err(|error| Trouble::unreadable(what, error))?.trim();
        self.name = Some(name.to_owned()).filter(|name| !name.is_empty());
        Ok(())
    }

    async fn notices(&mut self, now: Timestamp) -> Result<Vec<Notice>, Trouble> {
        let mut answer = self.events(self.version.unwrap_or(VERSIONS[0])).await?;
        if self.version.is_none() {
            let known = version(answer.status)?;
            self.version = Some(known);
            if known != VERSIONS[0] {
                answer = self.events(known).await?;
            }
        }
        notices(answer.status, &answer.body, self.name.as_deref(), now)
    }
}

impl Source for AzureSource {
    fn look(&mut self, now: Timestamp) -> BoxFuture<'_, Looked> {
        async move {
            let mut looked = Looked::default();
            if self.name.is_none()
                && let Err(trouble) = self.learn_name().await
            {
                // Without the name an event of a neighbour would end this machine.
                looked.troubles.push(trouble);
                return looked;
            }
            looked.add(self.notices(now).await);
            looked
        }
        .boxed()
    }

    fn cloud(&self) -> &'static str {
        "azure"
    }
}
