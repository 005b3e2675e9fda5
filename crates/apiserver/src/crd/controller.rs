//! Accepts names, establishes definitions, and removes the objects of deleted ones.

use std::sync::Arc;

use fleetwright_kstore::{At, EventKind, Scope};
use futures::{StreamExt, stream::FuturesUnordered};
use serde_json::{Value, json};

use super::{CLEANUP_FINALIZER, STORAGE, definition::resources_of};
use crate::{
    handlers::timestamp,
    internal::InternalClient,
    object,
    registry::Resource,
    server::Server,
    status::Result,
    storage::{self, StoredObject},
};

/// Serves what is defined already. For the start of a server.
pub fn load(server: &Server) {
    let Ok(listing) = server.storage().list(&Scope::all(STORAGE), At::Latest, None) else { return };
    for stored in &listing.items {
        if let Ok(definition) = storage::parse(&stored.json) {
            serve(server, &definition);
        }
    }
}

/// Follows the definitions until the server stops.
pub async fn run(server: Server) {
    let client = InternalClient::new(&server, "kube-apiserver");
    // Clean-ups wait for finalizers of others, so they go on beside the rest.
    let mut cleaning = FuturesUnordered::new();
    loop {
        let (listing, mut watch) = server.storage().list_and_watch(&Scope::all(STORAGE));
        for stored in &listing.items {
            if let Some(definition) = handle(&server, &client, stored).await {
                cleaning.push(clean_up(server.clone(), client.clone(), definition));
            }
        }
        loop {
            tokio::select! {
                () = server.stopping() => return,
                Some(()) = cleaning.next(), if !cleaning.is_empty() => {}
                event = watch.next() => match event {
                    Ok(event) if event.kind == EventKind::Deleted => remove(&server, &event.object),
                    Ok(event) => {
                        // Only the newest state counts; older events would undo it.
                        let Some(current) = server.storage().get(&event.object.key) else { continue };
                        if let Some(definition) = handle(&server, &client, &current).await {
                            cleaning.push(clean_up(server.clone(), client.clone(), definition));
                        }
                    }
                    Err(_) => break,
                },
            }
        }
    }
}

/// Serves and establishes a definition; returns it if it is to be cleaned up.
async fn handle(server: &Server, client: &InternalClient, stored: &StoredObject) -> Option<Value> {
    let definition = storage::parse(&stored.json).ok()?;
    if object::is_terminating(&definition) {
        let held = object::finalizers(&definition).any(|f| f == CLEANUP_FINALIZER);
        return held.then_some(definition);
    }
    serve(server, &definition);
    if let Err(error) = establish(server, client, &definition).await {
        let name = object::name(&definition);
        tracing::warn!(
            definition = name,
            error = error.message(),
            "a definition is not established"
        );
    }
    None
}

fn remove(server: &Server, stored: &StoredObject) {
    if let Ok(definition) = storage::parse(&stored.json) {
        let spec = &definition["spec"];
        server.registry().replace(
            object::text(spec, &["group"]),
            object::text(spec, &["names", "plural"]),
            Vec::new(),
        );
    }
}

fn serve(server: &Server, definition: &Value) {
    let spec = &definition["spec"];
    if accept_names(server, definition).1.is_some() {
        return;
    }
    server.registry().replace(
        object::text(spec, &["group"]),
        object::text(spec, &["names", "plural"]),
        resources_of(definition),
    );
}

/// The names of a definition that nobody else in its group uses, and what is in the way of the
/// others. Of several conflicts the last one is told.
fn accept_names(server: &Server, definition: &Value) -> (Value, Option<(&'static str, String)>) {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let group = object::text(spec, &["group"]);
    let plural = object::text(names, &["plural"]);
    let others: Vec<Arc<Resource>> = server
        .registry()
        .all()
        .into_iter()
        .filter(|r| *r.gvk.group == *group && *r.plural != *plural)
        .collect();
    let taken_resource = |name: &str| {
        others.iter().any(|r| {
            *r.plural == *name || *r.singular == *name || r.short_names.iter().any(|s| s == name)
        })
    };
    let taken_kind =
        |name: &str| others.iter().any(|r| *r.gvk.kind == *name || *r.list_kind == *name);
    let mut accepted = json!({"kind": "", "plural": ""});
    let mut conflict = None;
    let mut check = |reason, field: &str, taken: &dyn Fn(&str) -> bool| {
        let name = object::text(names, &[field]);
        if taken(name) {
            conflict = Some((reason, in_use(name)));
        } else if !name.is_empty() {
            accepted[field] = name.into();
        }
    };
    check("PluralConflict", "plural", &taken_resource);
    check("SingularConflict", "singular", &taken_resource);
    check("KindConflict", "kind", &taken_kind);
    check("ListKindConflict", "listKind", &taken_kind);
    let short = object::list(names, &["shortNames"]);
    match short.iter().filter_map(Value::as_str).find(|name| taken_resource(name)) {
        Some(name) => conflict = Some(("ShortNamesConflict", in_use(name))),
        None if !short.is_empty() => accepted["shortNames"] = short.into(),
        None => {}
    }
    if let Some(categories) = names.get("categories") {
        accepted["categories"] = categories.clone();
    }
    (accepted, conflict)
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", fleetwright_kschema::gotext::quote(name))
}

async fn establish(server: &Server, client: &InternalClient, definition: &Value) -> Result<()> {
    let mut status = definition.get("status").cloned().unwrap_or_else(|| json!({}));
    let now = timestamp(server.now());
    let (names, conflict) = accept_names(server, definition);
    let (accepted, reason, message) = match conflict {
        None => (true, "NoConflicts".to_owned(), "no conflicts found".to_owned()),
        Some((reason, message)) => (false, reason.to_owned(), message),
    };
    object::set(&mut status, &["acceptedNames"], names);
    set_condition(&mut status, &now, "NamesAccepted", accepted, &reason, &message);
    let was_established = condition(definition, "Established") == Some("True");
    if accepted {
        set_condition(
            &mut status,
            &now,
            "Established",
            true,
            "InitialNamesAccepted",
            "the initial names have been accepted",
        );
    } else if !was_established {
        set_condition(
            &mut status,
            &now,
            "Established",
            false,
            "NotAccepted",
            "not all names are accepted",
        );
    }
    if definition.get("status") == Some(&status) {
        return Ok(());
    }
    let mut updated = definition.clone();
    object::set(&mut updated, &["apiVersion"], "apiextensions.k8s.io/v1");
    object::set(&mut updated, &["kind"], "CustomResourceDefinition");
    object::set(&mut updated, &["status"], status);
    match client.put(&format!("{}/status", path(definition)), &updated).await {
        // Whoever changed it meanwhile makes another event.
        Err(error) if matches!(error.reason(), "Conflict" | "NotFound") => Ok(()),
        other => other.map(|_| ()),
    }
}

fn path(definition: &Value) -> String {
    let name = object::name(definition);
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

/// Deletes the objects of a definition that is going away, then lets it go.
async fn clean_up(server: Server, client: InternalClient, definition: Value) {
    const RETRY: std::time::Duration = std::time::Duration::from_millis(250);
    let spec = &definition["spec"];
    let scope = Scope::all(format!(
        "{}/{}",
        object::text(spec, &["group"]),
        object::text(spec, &["names", "plural"])
    ));
    let resource = resources_of(&definition).into_iter().next();
    let mut first = true;
    while let (Some(resource), Ok(listing)) =
        (&resource, server.storage().list(&scope, At::Latest, None))
    {
        if listing.items.is_empty() {
            break;
        }
        // Most objects go at once; the rest wait for somebody's finalizers.
        if !std::mem::take(&mut first) {
            tokio::time::sleep(RETRY).await;
        }
        for stored in &listing.items {
            let path = InternalClient::path(resource, &stored.key.namespace, &stored.key.name);
            // What cannot be deleted now is tried again.
            let _ = client.delete(&path, &stored.meta.uid, None).await;
        }
    }
    if let Err(error) = client.remove_finalizer(&path(&definition), CLEANUP_FINALIZER).await {
        let name = object::name(&definition);
        tracing::warn!(
            definition = name,
            error = error.message(),
            "a definition could not be removed"
        );
    }
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a str> {
    object::list(definition, &["status", "conditions"])
        .iter()
        .find(|c| object::text(c, &["type"]) == kind)
        .map(|c| object::text(c, &["status"]))
}

pub(crate) fn set_condition(
    status: &mut Value,
    now: &str,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
) {
    let value = if holds { "True" } else { "False" };
    if !status.get("conditions").is_some_and(Value::is_array) {
        object::set(status, &["conditions"], json!([]));
    }
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return;
    };
    let existing = conditions.iter_mut().find(|c| object::text(c, &["type"]) == kind);
    match existing {
        Some(condition) => {
            if object::text(condition, &["status"]) != value {
                object::set(condition, &["lastTransitionTime"], now);
            }
            object::set(condition, &["status"], value);
            object::set(condition, &["reason"], reason);
            object::set(condition, &["message"], message);
        }
        None => conditions.push(json!({
            "type": kind,
            "status": value,
            "reason": reason,
            "message": message,
            "lastTransitionTime": now,
        })),
    }
}
