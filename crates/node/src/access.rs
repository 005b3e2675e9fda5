//! The way to the Kubernetes API, as the kubelet.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::time::Instant;

/// How often the kubelet's credentials are compared with those in use.
const REFRESH: Duration = Duration::from_mins(1);
/// How long a request may take: the next attempt has a new connection.
pub(crate) const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// There is no client.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The kubeconfig cannot be read.
    #[error("cannot read the kubeconfig {}", path.display())]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        source: Box<kube::config::KubeconfigError>,
    },
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {}", path.display())]
    Unusable {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        source: Box<kube::Error>,
    },
}

/// What is in the files that credentials come from.
pub type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// Where clients come from.
pub trait Credentials: Send + Sync {
    /// The files as they are now: as long as they stay the same, so does the client.
    fn contents(&self) -> Contents;

    /// A client with the credentials as they are now.
    fn connect(&self) -> BoxFuture<'_, Result<Client, AccessError>>;
}

/// A client that is kept until it may be out of date.
pub struct Access {
    credentials: Box<dyn Credentials>,
    client: Option<(Client, Contents)>,
    checked: Option<Instant>,
}

impl Access {
    /// With the kubelet's kubeconfig, whose certificates are rotated.
    pub fn with_kubeconfig(path: &Path) -> Self {
        Self::new(KubeletFiles { path: path.to_owned() })
    }

    /// With one client for ever.
    pub fn with_client(client: Client) -> Self {
        Self::new(Fixed(client))
    }

    /// With credentials of one's own.
    pub fn new(credentials: impl Credentials + 'static) -> Self {
        Self { credentials: Box::new(credentials), client: None, checked: None }
    }

    /// The client to use now.
    pub(crate) async fn client(&mut self) -> Result<Client, AccessError> {
        let fresh = self.checked.is_some_and(|checked| checked.elapsed() < REFRESH);
        if let (Some((client, _)), true) = (&self.client, fresh) {
            return Ok(client.clone());
        }
        let contents = self.credentials.contents();
        if let Some((client, known)) = &self.client
            && *known == contents
        {
            self.checked = Some(Instant::now());
            return Ok(client.clone());
        }
        match (self.credentials.connect().await, &self.client) {
            (Ok(client), _) => {
                self.checked = Some(Instant::now());
                self.client = Some((client.clone(), contents));
                Ok(client)
            }
            // Files that are being replaced: the old certificate may still be good.
            (Err(error), Some((client, _))) => {
                tracing::warn!(%error, "the kubelet's credentials cannot be read again");
                Ok(client.clone())
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The server does not know us any more: the files are looked at before the next attempt.
    pub(crate) fn doubt(&mut self) {
        self.checked = None;
    }
}

struct Fixed(Client);

impl Credentials for Fixed {
    fn contents(&self) -> Contents {
        Contents::new()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Client, AccessError>> {
        futures::future::ready(Ok(self.0.clone())).boxed()
    }
}

/// The kubelet's kubeconfig and the files that it names.
struct KubeletFiles {
    path: PathBuf,
}

impl KubeletFiles {
    /// Relative names are relative to the kubeconfig; reading it makes them whole.
    fn read(&self) -> Result<Kubeconfig, AccessError> {
        Kubeconfig::read_from(&self.path).map_err(|source| AccessError::Unreadable {
            path: self.path.clone(),
            source: Box::new(source),
        })
    }

    async fn client(&self) -> Result<Client, AccessError> {
        let unreadable =
            |source| AccessError::Unreadable { path: self.path.clone(), source: Box::new(source) };
        let file = self.read()?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .map_err(unreadable)?;
        // The handler has its own patience.
        config.default_retry = false;
        // A kubelet reaches its API directly, whatever proxy the environment names.
        config.proxy_url = None;
        config.connect_timeout = Some(REQUEST_LIMIT);
        config.read_timeout = Some(REQUEST_LIMIT);
        config.write_timeout = Some(REQUEST_LIMIT);
        Client::try_from(config).map_err(|source| AccessError::Unusable {
            path: self.path.clone(),
            source: Box::new(source),
        })
    }
}

impl Credentials for KubeletFiles {
    fn contents(&self) -> Contents {
        let mut paths = vec![self.path.clone()];
        if let Ok(file) = self.read() {
            let users = file.auth_infos.into_iter().filter_map(|named| named.auth_info);
            for user in users {
                let named = [user.client_certificate, user.client_key, user.token_file];
                paths.extend(named.into_iter().flatten().map(PathBuf::from));
            }
            let clusters = file.clusters.into_iter().filter_map(|named| named.cluster);
            paths.extend(
                clusters.filter_map(|cluster| cluster.certificate_authority).map(PathBuf::from),
            );
        }
        let read = |path: PathBuf| std::fs::read(&path).ok().map(|content| (path, content));
        paths.into_iter().filter_map(read).collect()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Client, AccessError>> {
        self.client().boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    /// As a kubelet leaves it: the kubeconfig stays, a link is turned to another certificate.
    #[test]
    fn a_certificate_behind_a_link_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("first.pem"), "first").unwrap();
        fs::write(path("second.pem"), "second").unwrap();
        symlink(path("first.pem"), path("current.pem")).unwrap();
        let config = "apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {client-certificate: current.pem, client-key: current.pem}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
";
        fs::write(path("kubeconfig"), config).unwrap();
        let files = KubeletFiles { path: path("kubeconfig") };
        let before = files.contents();
        assert_eq!(before.len(), 2);
        assert_eq!(before, files.contents());
        fs::remove_file(path("current.pem")).unwrap();
        // For a moment there is none.
        assert_ne!(before, files.contents());
        symlink(path("second.pem"), path("current.pem")).unwrap();
        let after = files.contents();
        assert!(after.values().any(|content| content == b"second") && after != before);
    }
}
