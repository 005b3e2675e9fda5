//! Runs a script against one server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::transcript::{Body, Entry};
use super::variables::Variables;
use super::watch::{Watch, documents};
use super::{Action, Call, Condition, Script, Step};
use crate::cluster::{Cluster, delete_namespace, make_namespace};
use crate::http_client::{Client, Identity, Request, Response};
use crate::webhook::WebhookServer;

/// How long a condition may take to come true. Garbage collection on the real server needs a
/// few seconds after a new kind appears.
const WAIT_LIMIT: Duration = Duration::from_secs(40);
/// What is left of it for the rest of a script once a condition never came true.
const SHORT_WAIT_LIMIT: Duration = Duration::from_secs(1);

/// Runs all steps in a fresh namespace and returns what the server answered. The namespace is
/// deleted at the end; nobody waits for it to be gone.
pub async fn run(script: &Script, cluster: &dyn Cluster) -> Result<Vec<Entry>> {
    let client = &Client::new(cluster.access())?;
    let namespace = format!("t-{}", script.name);
    make_namespace(client, &namespace).await?;
    let mut variables = Variables::new(&script.variables)?;
    variables.set("ns", namespace.clone());
    let webhooks = if script.wants_webhooks { Some(WebhookServer::start().await?) } else { None };
    if let Some(webhooks) = &webhooks {
        variables.set("webhook", webhooks.url.clone());
        variables.set("webhook_ca", webhooks.authority.clone());
    }
    let mut runner = Runner {
        cluster,
        client,
        variables,
        watches: BTreeMap::new(),
        entries: Vec::new(),
        wait_limit: WAIT_LIMIT,
    };
    let mut result = Ok(());
    for step in &script.steps {
        result = runner
            .step(step)
            .await
            .with_context(|| format!("{} line {}: {}", script.name, step.line, step.title));
        if result.is_err() {
            break;
        }
    }
    delete_namespace(client, &namespace).await?;
    result.map(|()| runner.entries)
}

struct Runner<'a> {
    cluster: &'a dyn Cluster,
    client: &'a Client,
    variables: Variables,
    watches: BTreeMap<String, Watch>,
    entries: Vec<Entry>,
    wait_limit: Duration,
}

impl Runner<'_> {
    async fn step(&mut self, step: &Step) -> Result<()> {
        for _ in 0..step.repeat {
            let (request, answer) = self.act(&step.action).await?;
            for (name, path) in &step.captures {
                let value = match &answer.body {
                    Body::Json(value) => path.text(value),
                    Body::Events { events, .. } => path.text(&Value::Array(events.clone())),
                    Body::Nothing | Body::Text(_) => None,
                };
                // A missing value is compared like any other: the servers must agree on it.
                self.variables.set(name, value.unwrap_or_else(|| "missing".to_owned()));
            }
            self.entries.push(Entry {
                title: step.title.clone(),
                request,
                code: answer.code,
                content_type: answer.content_type,
                warnings: answer.warnings,
                body: answer.body,
                selection: step.select.clone(),
            });
        }
        Ok(())
    }

    async fn act(&mut self, action: &Action) -> Result<(String, Answer)> {
        Ok(match action {
            Action::Call(call) => {
                let answer = match self.client.send(&self.request(call)?).await {
                    Ok(response) => Answer::of(&response, is_watch(&call.target)),
                    // No answer is an answer too: the other server must agree.
                    Err(error) => Answer::note(format!("(no answer: {error:#})")),
                };
                (describe(call), answer)
            }
            Action::Watch { name, call } => {
                let answer = match self.client.open(&self.request(call)?).await {
                    Ok(stream) if stream.status == 200 => {
                        let answer = Answer::head(stream.status, &stream.headers);
                        self.watches.insert(name.clone(), Watch::read(stream));
                        answer
                    }
                    Ok(stream) => Answer::of(&stream.collect().await?, false),
                    Err(error) => Answer::note(format!("(no answer: {error:#})")),
                };
                (format!("watch {name} {}", describe(call)), answer)
            }
            Action::Collect { name, until, bookmarks } => {
                let label = format!("collect {name}");
                let Some(watch) = self.watches.get(name) else {
                    return Ok((label, Answer::note(format!("(no watch named {name} is open)"))));
                };
                let (events, closed) = watch.collect(until, *bookmarks).await;
                (label, Answer { body: Body::Events { events, closed }, ..Answer::default() })
            }
            Action::Wait { call, condition } => {
                let label = format!("wait until {}", describe(call));
                (label, self.wait(call, condition).await?)
            }
            Action::Forget => {
                self.cluster.forget().await.context("cannot make it forget")?;
                ("forget".to_owned(), Answer::default())
            }
            Action::Pause(time) => {
                sleep(*time).await;
                ("pause".to_owned(), Answer::default())
            }
        })
    }

    async fn wait(&mut self, call: &Call, condition: &Condition) -> Result<Answer> {
        let request = self.request(call)?;
        let deadline = Instant::now() + self.wait_limit;
        let mut delay = Duration::from_millis(10);
        loop {
            let response = self.client.send(&request).await?;
            let reached = match condition {
                Condition::Code(code) => response.status == *code,
                Condition::Value { path, expected } => {
                    let expected = self.variables.expand(expected)?;
                    path.text(&response.value()).is_some_and(|found| found == expected)
                }
            };
            if reached {
                return Ok(Answer::note("(reached)".to_owned()));
            }
            if Instant::now() > deadline {
                self.wait_limit = SHORT_WAIT_LIMIT;
                return Ok(Answer::note(format!(
                    "(never reached; the last answer was {} {})",
                    response.status,
                    response.text()
                )));
            }
            sleep(delay).await;
            delay = (delay * 2).min(Duration::from_millis(200));
        }
    }

    fn request(&self, call: &Call) -> Result<Request> {
        let mut headers = Vec::new();
        for (name, value) in &call.headers {
            headers.push((name.clone(), self.variables.expand(value)?));
        }
        let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        // The field manager is derived from the user agent.
        let mut defaults = Vec::new();
        if !given("User-Agent") {
            defaults.push(("User-Agent".to_owned(), "referee/1.0".to_owned()));
        }
        if call.body.is_some() && !given("Content-Type") {
            defaults.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        headers.extend(defaults);
        let body = self.variables.expand(call.body.as_deref().unwrap_or_default())?;
        Ok(Request {
            method: call.method.clone(),
            target: self.variables.expand(&call.target)?,
            headers,
            body: Bytes::from(body),
            identity: call.identity.clone(),
        })
    }
}

/// What is kept of an answer.
#[derive(Debug)]
struct Answer {
    code: Option<u16>,
    content_type: Option<String>,
    warnings: Vec<String>,
    body: Body,
}

impl Default for Answer {
    fn default() -> Self {
        Self { code: None, content_type: None, warnings: Vec::new(), body: Body::Nothing }
    }
}

impl Answer {
    /// Something to say where there is no body.
    fn note(text: String) -> Self {
        Self { body: Body::Text(text), ..Self::default() }
    }

    fn head(code: u16, headers: &HeaderMap) -> Self {
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into();
        Self {
            code: Some(code),
            content_type: headers.get("content-type").map(text),
            warnings: headers.get_all("warning").iter().map(text).collect(),
            body: Body::Nothing,
        }
    }

    fn of(response: &Response, is_watch: bool) -> Self {
        let mut answer = Self::head(response.status, &response.headers);
        let is_json = answer.content_type.as_deref().is_some_and(|kind| kind.contains("json"));
        answer.body = if response.body.is_empty() {
            Body::Nothing
        } else if is_watch && response.status == 200 && is_json {
            Body::Events { events: documents(&response.body), closed: true }
        } else {
            match serde_json::from_slice(&response.body) {
                Ok(value) if is_json => Body::Json(value),
                _ => Body::Text(response.text()),
            }
        };
        answer
    }
}

fn is_watch(target: &str) -> bool {
    target.contains("watch=1") || target.contains("watch=true") || target.contains("/watch/")
}

/// The request line as the script has it, so that it is the same for both servers.
fn describe(call: &Call) -> String {
    let who = match &call.identity {
        Identity::Admin => String::new(),
        Identity::Anonymous => " as anonymous".to_owned(),
        Identity::User(name) => format!(" as {name}"),
        Identity::Token(_) => " as the bearer of a token".to_owned(),
    };
    format!("{} {}{who}", call.method, call.target)
}
