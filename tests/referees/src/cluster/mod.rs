//! What a test needs to know of a cluster, whichever server it is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::http_client::{Client, Request};

pub mod binaries;
pub mod embedded;
pub mod real;

/// The people that both servers know by token: name, user identifier, groups.
pub const USERS: [(&str, &str, &[&str]); 6] = [
    ("alice", "1001", &["developers"]),
    ("bob", "1002", &[]),
    ("carol", "1003", &["operators", "developers"]),
    ("root", "1004", &["system:masters"]),
    ("system:node:nodes-a", "2001", &["system:nodes"]),
    ("system:node:nodes-b", "2002", &["system:nodes"]),
];

/// How long the controllers may take to fill a new namespace.
const CONTENT_LIMIT: Duration = Duration::from_secs(20);

/// A running server.
pub trait Cluster: Send + Sync {
    /// What to call it in messages.
    fn name(&self) -> &'static str;
    /// How to reach it.
    fn access(&self) -> &Access;
    /// Makes it forget what happened until now: states of the past, and pages of them. It may
    /// take a while after this until it has.
    fn forget(&self) -> Pending<'_>;
}

/// Something that takes time.
pub type Pending<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Access {
    /// `https://127.0.0.1:PORT`.
    pub url: String,
    /// Certificate of the server's authority, in PEM.
    pub authority: String,
    /// The administrator's client certificate, in PEM.
    pub admin_certificate: String,
    /// The administrator's key, in PEM.
    pub admin_key: String,
    /// The administrator's kubeconfig file.
    pub kubeconfig: PathBuf,
    /// Bearer tokens by user name.
    pub tokens: BTreeMap<String, String>,
}

impl Access {
    /// Reads the current context of a kubeconfig with embedded certificates.
    pub fn from_kubeconfig(kubeconfig: &Path) -> Result<Self> {
        let text = fs::read_to_string(kubeconfig)
            .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let config: Value = serde_saphyr::from_str(&text)
            .with_context(|| format!("{} is not YAML", kubeconfig.display()))?;
        let current = config["current-context"].as_str().unwrap_or_default();
        let context = &named(&config, "contexts", current)?["context"];
        let cluster = context["cluster"].as_str().unwrap_or_default();
        let cluster = &named(&config, "clusters", cluster)?["cluster"];
        let user = context["user"].as_str().unwrap_or_default();
        let user = &named(&config, "users", user)?["user"];
        Ok(Self {
            url: cluster["server"].as_str().context("the kubeconfig names no server")?.to_owned(),
            authority: decoded(cluster, "certificate-authority-data")?,
            admin_certificate: decoded(user, "client-certificate-data")?,
            admin_key: decoded(user, "client-key-data")?,
            kubeconfig: kubeconfig.to_owned(),
            tokens: tokens(),
        })
    }

    /// Writes the administrator's kubeconfig where `kubeconfig` says.
    pub fn write_kubeconfig(&self) -> Result<()> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "referee",
            "contexts": [{"name": "referee", "context": {"cluster": "referee", "user": "admin"}}],
            "clusters": [{"name": "referee", "cluster": {
                "server": self.url,
                "certificate-authority-data": BASE64.encode(&self.authority),
            }}],
            "users": [{"name": "admin", "user": {
                "client-certificate-data": BASE64.encode(&self.admin_certificate),
                "client-key-data": BASE64.encode(&self.admin_key),
            }}],
        });
        fs::write(&self.kubeconfig, config.to_string())
            .with_context(|| format!("cannot write {}", self.kubeconfig.display()))
    }
}

/// Makes a namespace and waits for what every namespace has: until the controllers have put it
/// there, lists in the namespace would differ from run to run.
pub async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let body = json!({"metadata": {"name": name}}).to_string();
    let made = client.send(&Request::new("POST", "/api/v1/namespaces").json(&body)).await?;
    ensure!(made.status == 201, "cannot make the namespace {name}: {}", made.text());
    let deadline = Instant::now() + CONTENT_LIMIT;
    for content in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
        let target = format!("/api/v1/namespaces/{name}/{content}");
        while client.send(&Request::get(&target)).await?.status != 200 {
            ensure!(Instant::now() < deadline, "the namespace {name} never gets its {content}");
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

/// Deletes a namespace; nobody waits for it to be gone.
pub async fn delete_namespace(client: &Client, name: &str) -> Result<()> {
    client.send(&Request::new("DELETE", &format!("/api/v1/namespaces/{name}"))).await?;
    Ok(())
}

fn named<'a>(config: &'a Value, list: &str, name: &str) -> Result<&'a Value> {
    config[list]
        .as_array()
        .and_then(|entries| entries.iter().find(|entry| entry["name"] == name))
        .with_context(|| format!("the kubeconfig has no {name:?} among its {list}"))
}

fn decoded(section: &Value, key: &str) -> Result<String> {
    let text = section[key].as_str().with_context(|| format!("the kubeconfig lacks {key} data"))?;
    let bytes = BASE64.decode(text).with_context(|| format!("{key} is not base64"))?;
    String::from_utf8(bytes).with_context(|| format!("{key} is not text"))
}

/// The bearer token of each of [`USERS`].
pub fn tokens() -> BTreeMap<String, String> {
    USERS.iter().map(|(name, _, _)| ((*name).to_owned(), format!("token-of-{name}"))).collect()
}

/// The same in kube-apiserver's token file format: `token,user,uid,"group1,group2"`.
pub fn token_file() -> String {
    USERS.iter().fold(String::new(), |mut file, (name, uid, groups)| {
        let _ = write!(file, "token-of-{name},{name},{uid}");
        if !groups.is_empty() {
            let _ = write!(file, ",\"{}\"", groups.join(","));
        }
        file.push('\n');
        file
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_kubeconfig_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let written = Access {
            url: "https://127.0.0.1:6443".into(),
            authority: "authority".into(),
            admin_certificate: "certificate".into(),
            admin_key: "key".into(),
            kubeconfig: folder.path().join("kubeconfig"),
            tokens: tokens(),
        };
        written.write_kubeconfig().unwrap();
        let read = Access::from_kubeconfig(&written.kubeconfig).unwrap();
        assert_eq!(format!("{written:?}"), format!("{read:?}"));
    }

    #[test]
    fn the_token_file_quotes_groups() {
        assert_eq!(
            token_file(),
            "token-of-alice,alice,1001,\"developers\"\n\
             token-of-bob,bob,1002\n\
             token-of-carol,carol,1003,\"operators,developers\"\n\
             token-of-root,root,1004,\"system:masters\"\n\
             token-of-system:node:nodes-a,system:node:nodes-a,2001,\"system:nodes\"\n\
             token-of-system:node:nodes-b,system:node:nodes-b,2002,\"system:nodes\"\n"
        );
    }
}
