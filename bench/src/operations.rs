//! The operations that are measured.

use std::sync::Arc;

use anyhow::Result;
use http::{Method, Uri};

use crate::load::Make;
use crate::objects::{self, FIXED_NAMESPACE, NAMESPACE, Template};
use crate::target::{Target, json_request, request};

/// How many objects a list returns, and how many are read and patched in turn.
pub(crate) const FIXED_OBJECTS: usize = 1000;

/// The names of the operations, in the order in which they are measured.
pub(crate) const NAMES: [&str; 5] =
    ["create ConfigMap", "create Machine", "get Machine", "list 1,000 Machines", "patch Machine"];

/// What makes the requests of an operation. `run` sets the names of this run's objects apart.
pub(crate) fn make(name: &str, target: &Target, run: usize) -> Result<Make> {
    Ok(match name {
        "create ConfigMap" => {
            create(target.uri(&objects::config_maps(NAMESPACE))?, objects::config_map(), run)
        }
        "create Machine" => {
            create(target.uri(&objects::machines(NAMESPACE))?, objects::machine(), run)
        }
        "get Machine" => {
            let addresses = fixed_addresses(target)?;
            Arc::new(move |caller, n| {
                json_request(Method::GET, pick(&addresses, caller, n), bytes::Bytes::new())
            })
        }
        "list 1,000 Machines" => {
            let address = target.uri(&objects::machines(FIXED_NAMESPACE))?;
            Arc::new(move |_, _| json_request(Method::GET, address.clone(), bytes::Bytes::new()))
        }
        "patch Machine" => {
            let addresses = fixed_addresses(target)?;
            Arc::new(move |caller, n| {
                // Serial numbers of different runs differ, or else a patch would change nothing.
                let body = objects::machine_patch(run * 10_000_000 + n);
                let address = pick(&addresses, caller, n);
                request(Method::PATCH, address, "application/merge-patch+json", body)
            })
        }
        unknown => anyhow::bail!("there is no operation named {unknown:?}"),
    })
}

fn create(address: Uri, template: Template, run: usize) -> Make {
    Arc::new(move |caller, n| {
        let body = template.named(&format!("r{run}-c{caller}-{n:07}"));
        json_request(Method::POST, address.clone(), body)
    })
}

/// Creates Machines `m-00000`, `m-00001`, ... in a namespace.
pub(crate) fn numbered(target: &Target, namespace: &str) -> Result<Make> {
    let address = target.uri(&objects::machines(namespace))?;
    let template = objects::machine();
    Ok(Arc::new(move |_, n| {
        json_request(Method::POST, address.clone(), template.named(&format!("m-{n:05}")))
    }))
}

fn fixed_addresses(target: &Target) -> Result<Vec<Uri>> {
    let collection = objects::machines(FIXED_NAMESPACE);
    (0..FIXED_OBJECTS).map(|n| target.uri(&format!("{collection}/m-{n:05}"))).collect()
}

/// The callers walk through the objects far apart, so that they hardly meet.
fn pick(addresses: &[Uri], caller: usize, n: usize) -> Uri {
    addresses[(caller * 15 + n) % addresses.len()].clone()
}
