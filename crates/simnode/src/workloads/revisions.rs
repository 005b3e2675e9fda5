//! Versions of templates.

use std::sync::Arc;

use fleetwright_runtime::{Informer, ObjectKey};
use k8s_openapi::{
    api::{
        apps::v1::ControllerRevision,
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, runtime::RawExtension},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch},
};
use serde::Serialize;
use serde_json::json;

use super::family::{Family, Workload, reference};
use crate::{
    cluster::{BY_CONTROLLER, managed, posted},
    error::{Failure, Outcome, exists_already},
    facts,
    lifecycle::MANAGER,
};

/// The label of a pod that says which version it is.
pub(crate) const VERSION_LABEL: &str = "controller-revision-hash";
/// How many old versions are kept if nothing is said.
const HISTORY: i32 = 10;
/// What hashes are written with: no vowels, so that no words appear.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A version of the template of a StatefulSet or a DaemonSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    /// The name of its ControllerRevision.
    pub(crate) name: String,
    pub(crate) hash: String,
    pub(crate) template: PodTemplateSpec,
}

/// A short name for a template. The same template always has the same name; `collisions` gives
/// another one if somebody has it already. Kubernetes hashes Go's memory layout, so its names are
/// others for the same template.
pub(crate) fn hash(template: &impl Serialize, collisions: Option<i32>) -> String {
    let mut bytes = serde_json::to_vec(template).unwrap_or_default();
    if let Some(collisions) = collisions {
        bytes.extend(collisions.to_le_bytes());
    }
    // FNV-1a.
    let hash = bytes
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

fn read(revision: &ControllerRevision) -> Option<Version> {
    let RawExtension(data) = &revision.data;
    let mut template = data.get("spec")?.get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    Some(Version {
        name: revision.name_any(),
        hash: facts::labels(&revision.metadata).get(VERSION_LABEL)?.clone(),
        template: serde_json::from_value(template).ok()?,
    })
}

/// The versions of an owner: all that are known, and that of its template, which is written down
/// if it is new. Versions that nobody uses any more are forgotten.
pub(crate) async fn sync<O: Workload>(
    family: &Family<O, Pod>,
    revisions: &Informer<ControllerRevision>,
    owner: &O,
    template: &PodTemplateSpec,
    limit: Option<i32>,
    in_use: &[String],
) -> Result<(Vec<Version>, Version), Failure> {
    let key = ObjectKey::of(owner);
    let mut known = revisions.by_index(BY_CONTROLLER, facts::uid(owner.meta()));
    known.sort_by_key(|revision| revision.revision.unwrap_or_default());
    let newest = known.last().and_then(|revision| revision.revision).unwrap_or_default();
    let mut versions: Vec<Version> = known.iter().filter_map(|revision| read(revision)).collect();
    let api = family.cluster.of_namespace::<ControllerRevision>(&key.namespace);
    let current = versions.iter().rposition(|version| version.template == *template);
    let update = if let Some(at) = current {
        let found = versions[at].clone();
        if let Some(revision) = known.iter().find(|r| r.name_any() == found.name)
            && revision.revision.unwrap_or_default() < newest
        {
            // An old version is in use again.
            let patch = Patch::Merge(json!({"revision": newest + 1}));
            let numbered = api.patch(&found.name, &managed(MANAGER), &patch).await;
            numbered.unless_gone().trying("number revision", &found.name)?;
        }
        found
    } else {
        let hash = hash(template, None);
        let version =
            Version { name: format!("{}-{hash}", key.name), hash, template: template.clone() };
        match api.create(&posted(MANAGER), &write(owner, &version, newest + 1)).await {
            Err(error) if !exists_already(&error) => {
                return Err(error).trying("create revision", &version.name);
            }
            _ => {}
        }
        versions.push(version.clone());
        version
    };
    let unused = |revision: &&Arc<ControllerRevision>| {
        let name = revision.name_any();
        let hash = facts::labels(&revision.metadata).get(VERSION_LABEL);
        name != update.name && !in_use.iter().any(|used| *used == name || Some(used) == hash)
    };
    let unused: Vec<_> = known.iter().filter(unused).collect();
    let kept = usize::try_from(limit.unwrap_or(HISTORY)).unwrap_or_default();
    for revision in unused.iter().take(unused.len().saturating_sub(kept)) {
        let name = revision.name_any();
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        deleted.unless_gone().trying("delete revision", &name)?;
    }
    Ok((versions, update))
}

fn write<O: Workload>(owner: &O, version: &Version, number: i64) -> ControllerRevision {
    let mut template = serde_json::to_value(&version.template).unwrap_or_default();
    template["$patch"] = json!("replace");
    let of_template = version.template.metadata.as_ref().and_then(|meta| meta.labels.clone());
    let mut labels = of_template.unwrap_or_default();
    labels.insert(VERSION_LABEL.to_owned(), version.hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(version.name.clone()),
            namespace: owner.meta().namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![reference(owner)]),
            ..ObjectMeta::default()
        },
        data: RawExtension(json!({"spec": {"template": template}})),
        revision: Some(number),
    }
}
