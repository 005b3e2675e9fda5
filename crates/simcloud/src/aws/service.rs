//! The simulated AWS as a service of whole HTTP messages.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use fleetwright_clock::{Clock, Random};
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::{
    audit::{Audit, Recorded},
    control,
    faults::{Effect, Fault, Faults, METADATA},
    journal::{Entry, Journal, Step, only_reads},
    metadata::{self, Metadata, Tokens},
    model::{
        ApiError, Event, Outcome, Region,
        throttle::{Cost, Throttle},
    },
    wire::{
        self, Api, Call,
        form::{Form, LARGEST},
        sign::Keys,
    },
};
use crate::NoAnswer;

/// A simulated account of AWS in one region. Clones are the same account.
///
/// It is a [`tower::Service`] of HTTP messages: call it in one process, or put it on a socket
/// with [`crate::serve`]. Somebody must run [`Aws::run`] for things to happen by themselves, in
/// their own time: instances that boot, groups that go, interruptions.
#[derive(Clone)]
pub struct Aws(Arc<Shared>);

struct Shared {
    clock: Clock,
    state: Mutex<State>,
    /// Something may be due earlier than it was.
    changed: Notify,
}

/// Told of every event.
type Observer = Box<dyn Fn(&Event) + Send + Sync>;

struct State {
    region: Region,
    keys: Keys,
    throttle: Throttle,
    faults: Faults,
    metadata_faults: Faults,
    tokens: Tokens,
    audit: Audit,
    random: Random,
    subscribers: Vec<mpsc::UnboundedSender<Arc<Event>>>,
    observers: Vec<Observer>,
    journal: Option<Journal>,
    /// The time of the step that is done again.
    replayed: Option<Timestamp>,
}

/// How many calls the audit log keeps.
const AUDITED: usize = 20_000;

impl std::fmt::Debug for Aws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aws").finish_non_exhaustive()
    }
}

impl Aws {
    /// Serves a region. [`super::seed::Installed`] makes one as an installer leaves it.
    pub fn new(region: Region, keys: Keys, clock: Clock) -> Self {
        let random = region.random.fork();
        let state = State {
            region,
            keys,
            throttle: Throttle::default(),
            faults: Faults::default(),
            metadata_faults: Faults::default(),
            tokens: Tokens::default(),
            audit: Audit::new(AUDITED),
            random,
            subscribers: Vec::new(),
            observers: Vec::new(),
            journal: None,
            replayed: None,
        };
        Self(Arc::new(Shared { clock, state: Mutex::new(state), changed: Notify::new() }))
    }

    /// Every event from now on, none left out. Never blocks the cloud: an unread event waits.
    pub fn subscribe(&self) -> mpsc::UnboundedReceiver<Arc<Event>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.state.lock().subscribers.push(sender);
        receiver
    }

    /// Calls `observer` at every event, at once and in order, for checks of invariants. It runs
    /// while the cloud is locked: it must not call the cloud.
    pub fn observe(&self, observer: impl Fn(&Event) + Send + Sync + 'static) {
        self.0.state.lock().observers.push(Box::new(observer));
    }

    /// Looks at the region, or changes it behind everybody's back.
    pub fn with<R>(&self, f: impl FnOnce(&mut Region, Timestamp) -> R) -> R {
        self.locked(|state, now| f(&mut state.region, now))
    }

    /// Looks at the access keys, or changes them.
    pub fn with_keys<R>(&self, f: impl FnOnce(&mut Keys) -> R) -> R {
        f(&mut self.0.state.lock().keys)
    }

    /// Adds a fault.
    pub fn fault(&self, fault: Fault) {
        let mut state = self.0.state.lock();
        if fault.action.as_deref() == Some(METADATA) {
            state.metadata_faults.add(fault);
        } else {
            state.faults.add(fault);
        }
    }

    /// The faults that still wait for their calls.
    pub fn faults(&self) -> Vec<Fault> {
        let state = self.0.state.lock();
        [state.faults.list(), state.metadata_faults.list()].concat()
    }

    /// Takes all faults away.
    pub fn clear_faults(&self) {
        let mut state = self.0.state.lock();
        state.faults.clear();
        state.metadata_faults.clear();
    }

    /// How many calls there were of `service:Action`, such as `ec2:RunInstances`.
    pub fn count(&self, action: &str) -> u64 {
        self.0.state.lock().audit.counts().get(action).copied().unwrap_or(0)
    }

    /// How many calls there were of each `service:Action`.
    pub fn counts(&self) -> std::collections::BTreeMap<String, u64> {
        self.0.state.lock().audit.counts().clone()
    }

    /// How many calls failed, by `service:Action Code`.
    pub fn errors(&self) -> std::collections::BTreeMap<String, u64> {
        self.0.state.lock().audit.errors().clone()
    }

    /// The last calls.
    pub fn calls(&self) -> Vec<Recorded> {
        self.0.state.lock().audit.calls().iter().cloned().collect()
    }

    /// Forgets the calls so far.
    pub fn clear_calls(&self) {
        self.0.state.lock().audit.clear();
    }

    /// Has every step from now on written down, each before its answer is given. `journal` runs
    /// while the cloud is locked: it must not call the cloud.
    pub fn keep_journal(&self, journal: impl Fn(&Entry) + Send + Sync + 'static) {
        self.0.state.lock().journal = Some(Box::new(journal));
    }

    /// Does a step again, at its own time. All of a journal, in order, on a new account of the
    /// same seed, makes the account that it is of.
    pub fn replay(&self, entry: &Entry) {
        self.0.state.lock().replayed = Some(entry.at);
        match &entry.step {
            Step::Call { form, caller } => {
                let again = Request::post("/").body(Bytes::from(form.clone()));
                if let Ok(Ok(read)) = again.map(|request| read(&request)) {
                    self.locked(|state, now| state.carry_out(&read, caller.clone(), now, ""))
                        .unwrap_or_default();
                }
            }
            Step::Control { method, path, body } => {
                let uri = format!("{}{path}", control::PREFIX);
                let again = Request::builder().method(method.as_str()).uri(uri);
                if let Ok(request) = again.body(Bytes::from(body.clone())) {
                    control::answer(self, path, &request);
                }
            }
        }
        self.0.state.lock().replayed = None;
    }

    /// The metadata service of an instance, as a service of its own.
    pub fn metadata(&self, instance: &str) -> Metadata {
        Metadata::new(self.clone(), instance)
    }

    /// Answers a question of an instance to its metadata service.
    pub(super) async fn answer_metadata(
        &self,
        instance: &str,
        request: &Request<Bytes>,
        path: &str,
    ) -> Result<Response<Bytes>, NoAnswer> {
        let effect = self.locked(|state, _| {
            let parameters = [instance.to_owned(), path.to_owned()];
            state.metadata_faults.hit(METADATA, &parameters.iter())
        });
        if let Some(effect) = &effect {
            tokio::time::sleep(effect.delay()).await;
            if let Some(answer) = metadata::spoilt(effect).await {
                return answer;
            }
        }
        self.locked(|state, now| {
            let State { region, tokens, random, .. } = state;
            metadata::answer(region, tokens, random, instance, request, path, now)
        })
    }

    /// Lets things happen when they are due. Never ends: run it beside the service.
    pub async fn run(&self) {
        loop {
            let changed = self.0.changed.notified();
            let wait = self.locked(|state, now| {
                let due = state.region.next_due();
                due.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default())
            });
            let due = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = changed => {}
            }
        }
    }

    /// Works on the state as it is now, then tells everybody what changed.
    fn locked<R>(&self, f: impl FnOnce(&mut State, Timestamp) -> R) -> R {
        let mut state = self.0.state.lock();
        let now = state.replayed.unwrap_or_else(|| self.0.clock.now());
        let due = state.region.next_due();
        state.region.advance(now);
        let result = f(&mut state, now);
        // A delay of nothing is due at once.
        state.region.advance(now);
        let events = state.region.drain_events();
        for event in events {
            for observer in &state.observers {
                observer(&event);
            }
            if !state.subscribers.is_empty() {
                let event = Arc::new(event);
                state.subscribers.retain(|subscriber| subscriber.send(Arc::clone(&event)).is_ok());
            }
        }
        let earlier = match (state.region.next_due(), due) {
            (Some(new), Some(old)) => new < old,
            (new, old) => new.is_some() && old.is_none(),
        };
        drop(state);
        if earlier {
            self.0.changed.notify_one();
        }
        result
    }

    /// Answers one request.
    async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoAnswer> {
        if let Some(path) = request.uri().path().strip_prefix(control::PREFIX) {
            // Not a step: it changes nothing that must be brought back.
            if let Some(rest) = path.strip_prefix(metadata::PREFIX) {
                let (instance, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                return self.answer_metadata(instance, &request, path).await;
            }
            if request.method() != Method::GET {
                let step = Step::Control {
                    method: request.method().to_string(),
                    path: path.to_owned(),
                    body: String::from_utf8_lossy(request.body()).into_owned(),
                };
                self.locked(|state, at| state.write_down(at, || step));
            }
            return Ok(control::answer(self, path, &request));
        }
        let (wait, answer) = self.locked(|state, now| state.answer(&request, now));
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        answer
    }
}

impl tower::Service<Request<Bytes>> for Aws {
    type Response = Response<Bytes>;
    type Error = NoAnswer;
    type Future = BoxFuture<'static, Result<Response<Bytes>, NoAnswer>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let aws = self.clone();
        Box::pin(async move { aws.answer(request).await })
    }
}

/// A request that could be read.
struct Read {
    api: Api,
    action: String,
    form: Form,
}

impl State {
    /// The answer, and how long it takes.
    fn answer(
        &mut self,
        request: &Request<Bytes>,
        now: Timestamp,
    ) -> (Duration, Result<Response<Bytes>, NoAnswer>) {
        let latency = self.region.settings.latency;
        let id = self.random.uuid().to_string();
        let read = match read(request) {
            Ok(read) => read,
            Err((api, error)) => return (latency, Ok(refuse(api, &error, &id))),
        };
        let fault = self.faults.hit(&read.action, &read.form.values().values());
        let wait = latency + fault.as_ref().map(Effect::delay).unwrap_or_default();
        let (caller, outcome) = self.outcome(request, &read, fault.as_ref(), now, &id);
        let answer = match (&outcome, &fault) {
            (_, Some(Effect::Lost { after: false })) => Err(NoAnswer::NotSent),
            (_, Some(Effect::Lost { after: true })) => Err(NoAnswer::Lost),
            (Ok(body), _) => Ok(respond(StatusCode::OK, body.clone(), &id)),
            (Err(error), _) => Ok(refuse(read.api, error, &id)),
        };
        self.audit.record(Recorded {
            sequence: 0,
            at: now,
            service: read.api.name(),
            version: read.form.values().get("Version").cloned().unwrap_or_default(),
            action: read.action,
            access_key: caller,
            parameters: read.form.values().clone(),
            status: answer.as_ref().ok().map(|answer| answer.status().as_u16()),
            error: outcome.err().map(|error| error.code.into_owned()),
        });
        (wait, answer)
    }

    /// Who calls, and what comes of it.
    fn outcome(
        &mut self,
        request: &Request<Bytes>,
        read: &Read,
        fault: Option<&Effect>,
        now: Timestamp,
        id: &str,
    ) -> (Option<String>, Outcome<String>) {
        let Read { api, action, form } = read;
        let checked = if self.region.settings.signatures {
            self.keys.check(*api, action, request, &self.region.settings.region, now)
        } else {
            Ok(None)
        };
        let caller = match checked {
            Ok(caller) => caller,
            Err(error) => return (None, Err(error)),
        };
        match fault {
            Some(Effect::Throttle) => return (caller, Err(ApiError::throttled())),
            Some(Effect::Lost { after: false }) => {
                return (caller, Err(ApiError::server("ConnectionBroken", "not sent")));
            }
            Some(effect @ Effect::Error { after: false, .. }) => {
                return (caller, Err(scripted(effect)));
            }
            _ => {}
        }
        if *api == Api::Ec2
            && let Err(error) = self.throttle.take(
                &self.region.settings.throttling,
                action,
                cost(action, form),
                now,
            )
        {
            return (caller, Err(error));
        }
        if !only_reads(action) {
            self.write_down(now, || Step::Call {
                form: text_of(request).unwrap_or_default().to_owned(),
                caller: caller.clone(),
            });
        }
        let outcome = self.carry_out(read, caller.clone(), now, id);
        match fault {
            Some(effect @ Effect::Error { after: true, .. }) if outcome.is_ok() => {
                (caller, Err(scripted(effect)))
            }
            _ => (caller, outcome),
        }
    }
}

impl State {
    /// Does what a call asks for.
    fn carry_out(
        &mut self,
        read: &Read,
        caller: Option<String>,
        now: Timestamp,
        id: &str,
    ) -> Outcome<String> {
        let mut call =
            Call { region: &mut self.region, keys: &mut self.keys, now, form: &read.form, caller };
        wire::answer(read.api, &read.action, &mut call, id)
    }

    fn write_down(&self, at: Timestamp, step: impl FnOnce() -> Step) {
        if let Some(journal) = &self.journal {
            journal(&Entry { at, step: step() });
        }
    }
}

/// The form of a request; none when it is not text.
fn text_of(request: &Request<Bytes>) -> Option<&str> {
    match *request.method() {
        Method::GET => Some(request.uri().query().unwrap_or_default()),
        _ => std::str::from_utf8(request.body()).ok(),
    }
}

/// Reads the form and finds out what is called.
fn read(request: &Request<Bytes>) -> Result<Read, (Api, ApiError)> {
    let fail = |code, message: &str| Err((Api::Ec2, ApiError::client(code, message)));
    if request.body().len() > LARGEST {
        return fail("RequestEntityTooLarge", "Request body is too large");
    }
    if ![Method::GET, Method::POST].contains(request.method()) {
        return fail("InvalidAction", "Only GET and POST are possible.");
    }
    let Some(text) = text_of(request) else {
        return fail("MalformedQueryString", "The query string is malformed.");
    };
    let form = Form::parse(text.trim()).map_err(|error| (Api::Ec2, error))?;
    let root = form.root();
    let Some(version) = root.text("Version") else {
        return Err((Api::Ec2, ApiError::missing("Version")));
    };
    let Some(api) = Api::of_version(&version) else {
        let message = format!("The requested version ({version}) of the service does not exist");
        return Err((Api::Ec2, ApiError::client("NoSuchVersion", message)));
    };
    let Some(action) = root.text("Action") else {
        let error = ApiError::client("MissingAction", "The request is missing an action");
        return Err((api, error));
    };
    Ok(Read { api, action, form })
}

/// What a call costs in tokens.
fn cost(action: &str, form: &Form) -> Cost {
    let values = form.values();
    let plain = ["Action", "Version", "DryRun"];
    let resources = match action {
        "RunInstances" => values.get("MaxCount").and_then(|count| count.parse().ok()).unwrap_or(1),
        _ => u32::try_from(form.root().list("InstanceId").len()).unwrap_or(u32::MAX),
    };
    Cost {
        reads: action.starts_with("Describe"),
        narrow: values.keys().any(|key| !plain.contains(&key.as_str())),
        resources,
    }
}

fn scripted(effect: &Effect) -> ApiError {
    let (code, status, message) = match effect {
        Effect::Error { code, status, message, .. } => (code.clone(), *status, message.clone()),
        _ => ("InternalError".to_owned(), 500, String::new()),
    };
    ApiError { status, code: code.into(), message }
}

fn refuse(api: Api, error: &ApiError, id: &str) -> Response<Bytes> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    respond(status, wire::refusal(api, error, id), id)
}

fn respond(status: StatusCode, body: String, id: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("text/xml;charset=UTF-8"),
    );
    if let Ok(id) = http::HeaderValue::from_str(id) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}
