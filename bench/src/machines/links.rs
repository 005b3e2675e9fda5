//! Machines that have instances are linked to their Nodes when those register.

use std::fmt::Write;

use anyhow::{Context, Result};
use fleetwright_api::{machine::Machine, names::MACHINE_NAMESPACE};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Scale,
    ground::{self, Ground, IN_FLIGHT, QUIET, WORKERS},
    load::Load,
    objects,
    traffic::{Counts, Traffic, in_words, is_write, writes},
};

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale) -> Result<String> {
    let count = scale.set;
    let ground = Ground::start(Vec::new()).await?;
    let traffic = Traffic::default();
    let controllers = ground.controllers("*", &traffic).await?;
    ground.provision(count, &traffic).await?;
    let nodes: Vec<Value> = ground.instances().iter().map(objects::node).collect();
    let load = Load::begin(&ground.processes())?;

    traffic.clear();
    let begin = Instant::now();
    ground::register(&ground.user, nodes.clone()).await?;
    let registered = begin.elapsed().as_secs_f64();
    ground.wait_for("Running", count, &traffic).await?;
    let linked = traffic.last_write().unwrap_or(begin).duration_since(begin).as_secs_f64();
    let sent = traffic.counts();

    // Nothing is left to do, and nobody does anything.
    traffic.clear();
    tokio::time::sleep(QUIET * 3).await;
    let afterwards = traffic.counts();
    controllers.stop().await?;
    let plain = plain(&ground, nodes, &sent).await?;
    let load = load.end()?;

    let mut text = String::new();
    writeln!(
        text,
        "## Linking {count} Machines to Nodes

{count} Machines have instances on kube-apiserver with etcd; then {count} Nodes register, {IN_FLIGHT} at a
time, and all controllers run with {WORKERS} workers. From the first Node to the last write. The reference
registers as many Nodes and then sends the writes that the controllers sent, and nothing else,
{IN_FLIGHT} at a time. {load}

| | seconds | Machines per second | |
|---|---|---|---|
| registering the Nodes alone | {registered:.2} | {:.0} | |
| plain client: Nodes, then the same writes (reference) | {plain:.2} | {:.0} | 100 % |
| controllers: all Machines Running and labelled on their Nodes | {linked:.2} | {:.0} | {:.0} % |

Requests of the controllers: {} ({:.2} writes per Machine). In the {} seconds after that: {}.",
        count as f64 / registered,
        count as f64 / plain,
        count as f64 / linked,
        100.0 * plain / linked,
        in_words(&sent),
        writes(&sent) as f64 / count as f64,
        (QUIET * 3).as_secs(),
        in_words(&afterwards),
    )?;
    Ok(text)
}

/// Registers as many Nodes, and sends as many writes of each kind.
async fn plain(ground: &Ground, nodes: Vec<Value>, sent: &Counts) -> Result<f64> {
    let client = ground.client(&Traffic::default()).await?;
    let machines: Vec<String> =
        names::<Machine>(&Api::namespaced(client.clone(), MACHINE_NAMESPACE)).await?;
    let others: Vec<Value> = nodes
        .into_iter()
        .map(|mut node| {
            node["metadata"]["name"] =
                json!(format!("other-{}", node["metadata"]["name"].as_str().unwrap_or("")));
            node["spec"]["providerID"] = json!(null);
            node
        })
        .collect();
    let registered: Vec<String> = others
        .iter()
        .filter_map(|node| node["metadata"]["name"].as_str().map(str::to_owned))
        .collect();
    let begin = Instant::now();
    ground::register(&client, others).await?;
    for (what, count) in sent.iter().filter(|(what, _)| is_write(what)) {
        let names = if what.contains("nodes") { &registered } else { &machines };
        let total = usize::try_from(*count).unwrap_or_default();
        let numbered = names.iter().cycle().take(total).enumerate();
        stream::iter(numbered)
            .map(|(number, name)| write(&client, what, name, number))
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await
            .with_context(|| format!("the plain client cannot {what}"))?;
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// A write of the same kind that changes something.
async fn write(client: &Client, what: &str, name: &str, number: usize) -> Result<()> {
    let params = PatchParams::default();
    let note = Patch::Merge(json!({"metadata": {"annotations": {"bench": number.to_string()}}}));
    let status =
        json!({"status": {"nodeRef": {"kind": "Node", "name": format!("other-{number}")}}});
    let machines: Api<Machine> = Api::namespaced(client.clone(), MACHINE_NAMESPACE);
    match what {
        "patch machines" => drop(machines.patch(name, &params, &note).await?),
        "patch machines/status" => {
            drop(machines.patch_status(name, &params, &Patch::Merge(status)).await?);
        }
        "patch nodes" => {
            let nodes: Api<Node> = Api::all(client.clone());
            drop(nodes.patch(name, &params, &note).await?);
        }
        // Events and the statuses of sets are few, and no part of the comparison.
        _ => {}
    }
    Ok(())
}

async fn names<K>(api: &Api<K>) -> Result<Vec<String>>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let all = api.list_metadata(&ListParams::default()).await.context("cannot list")?;
    Ok(all.items.iter().map(ResourceExt::name_any).collect())
}
