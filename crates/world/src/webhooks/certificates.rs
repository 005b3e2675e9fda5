//! The certificate of the webhooks: where it is kept, and that it is renewed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fleetwright_admission::{Certificate, CertificateError};
use fleetwright_certificates::{Bundle, CertificateError as SigningError, Holder, Identity};
use fleetwright_clock::Clock;
use fleetwright_runtime::Informer;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// How often the age of the certificate is looked at. It is renewed weeks before its end.
const LOOK: Duration = Duration::from_hours(1);
/// How often the files of a folder are looked at.
const LOOK_AT_FILES: Duration = Duration::from_secs(30);
/// Replicas that start together race for the first certificate; one of them wins each time.
const RACES: usize = 16;
/// Who writes the Secret.
const MANAGER: &str = "fleetwright/webhooks";

// The keys that everything which deals in certificates uses.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const TRUSTED: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";

/// The certificate cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CertificateTrouble {
    /// The Secret cannot be read or written.
    #[error("cannot keep the certificate of the webhooks in Secret fleetwright-system/{name}")]
    Secret {
        /// The Secret.
        name: String,
        /// What the API says.
        source: kube::Error,
    },
    /// A file cannot be read or written.
    #[error("cannot keep the certificate of the webhooks in {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It cannot be made.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// It cannot be used.
    #[error("{place}: {source}")]
    Unusable {
        /// Where it is kept.
        place: String,
        /// Why not.
        source: CertificateError,
    },
    /// Others write it all the time.
    #[error("the certificate of the webhooks is changed by others again and again")]
    Contended,
}

/// Where the certificate is kept.
pub(super) enum Place {
    /// In a Secret, which replicas share.
    Secret {
        /// Secrets of our namespace.
        api: Box<Api<Secret>>,
        /// Its name.
        name: String,
    },
    /// In files.
    Folder(PathBuf),
}

/// What is kept.
struct Kept {
    bundle: Bundle,
    /// Another writes this place, and we only read.
    foreign: bool,
    /// The Secret that it was read from.
    secret: Option<Secret>,
}

impl Place {
    async fn load(&self) -> Result<Option<Kept>, CertificateTrouble> {
        match self {
            Self::Secret { api, name } => {
                let found = api.get_opt(name).await.map_err(|source| self.refused(source))?;
                Ok(found.map(|secret| {
                    let bundle = bundle(|key| {
                        let data = secret.data.as_ref().and_then(|data| data.get(key));
                        data.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned())
                    });
                    Kept { bundle, foreign: false, secret: Some(secret) }
                }))
            }
            Self::Folder(folder) => {
                let mut files = Vec::new();
                for key in [CERTIFICATE, KEY, TRUSTED, AUTHORITY_KEY] {
                    files.extend(read(&folder.join(key))?.map(|text| (key, text)));
                }
                if files.is_empty() {
                    return Ok(None);
                }
                let text = |key: &str| {
                    files.iter().find(|(name, _)| *name == key).map(|(_, text)| text.clone())
                };
                let foreign = text(AUTHORITY_KEY).is_none();
                Ok(Some(Kept { bundle: bundle(text), foreign, secret: None }))
            }
        }
    }

    /// Writes it over what was read; false when another was faster.
    async fn save(&self, bundle: &Bundle, over: Option<Kept>) -> Result<bool, CertificateTrouble> {
        let contents = [
            (CERTIFICATE, &bundle.serving.certificate),
            (KEY, &bundle.serving.key),
            (TRUSTED, &bundle.trusted),
            (AUTHORITY_KEY, &bundle.authority_key),
        ];
        match self {
            Self::Secret { api, name } => {
                let there = over.and_then(|kept| kept.secret);
                let new = there.is_none();
                let mut secret = there.unwrap_or_else(|| Secret {
                    metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
                    type_: Some("kubernetes.io/tls".to_owned()),
                    ..Secret::default()
                });
                let data = secret.data.get_or_insert_default();
                for (key, text) in contents {
                    data.insert(key.to_owned(), ByteString(text.clone().into_bytes()));
                }
                let params =
                    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
                let written = if new {
                    api.create(&params, &secret).await
                } else {
                    api.replace(&secret.name_any(), &params, &secret).await
                };
                match written {
                    Ok(_) => Ok(true),
                    Err(kube::Error::Api(status))
                        if status.is_conflict()
                            || status.is_already_exists()
                            || status.is_not_found() && !new =>
                    {
                        Ok(false)
                    }
                    Err(source) => Err(self.refused(source)),
                }
            }
            Self::Folder(folder) => {
                for (key, text) in contents {
                    write(folder, key, text)?;
                }
                Ok(true)
            }
        }
    }

    fn refused(&self, source: kube::Error) -> CertificateTrouble {
        let name = match self {
            Self::Secret { name, .. } => name.clone(),
            Self::Folder(folder) => folder.display().to_string(),
        };
        CertificateTrouble::Secret { name, source }
    }

    fn describe(&self) -> String {
        match self {
            Self::Secret { name, .. } => format!("Secret fleetwright-system/{name}"),
            Self::Folder(folder) => folder.display().to_string(),
        }
    }
}

fn bundle(text: impl Fn(&str) -> Option<String>) -> Bundle {
    let text = |key| text(key).unwrap_or_default();
    Bundle {
        trusted: text(TRUSTED),
        authority_key: text(AUTHORITY_KEY),
        serving: Identity { certificate: text(CERTIFICATE), key: text(KEY) },
    }
}

fn read(path: &Path) -> Result<Option<String>, CertificateTrouble> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CertificateTrouble::File { path: path.to_owned(), source }),
    }
}

/// Writes a file that only its owner may read, so that readers see all of it or nothing.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), CertificateTrouble> {
    let path = folder.join(name);
    let write = || {
        fs::create_dir_all(folder)?;
        let temporary = folder.join(format!(".{name}.{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        io::Write::write_all(&mut options.open(&temporary)?, text.as_bytes())?;
        fs::rename(&temporary, &path)
    };
    write().map_err(|source| CertificateTrouble::File { path: path.clone(), source })
}

/// Keeps the certificate that clients are shown.
pub(super) struct Keeper {
    place: Place,
    holder: Holder,
    clock: Clock,
    shown: Arc<Certificate>,
    trusted: watch::Sender<String>,
}

impl Keeper {
    /// Takes the certificate that is kept, or makes one.
    pub(super) async fn open(
        place: Place,
        holder: Holder,
        clock: Clock,
    ) -> Result<Self, CertificateTrouble> {
        let bundle = current(&place, &holder, &clock).await?;
        let shown = Certificate::new(&bundle.serving.certificate, &bundle.serving.key)
            .map_err(|source| CertificateTrouble::Unusable { place: place.describe(), source })?;
        Ok(Self { place, holder, clock, shown, trusted: watch::Sender::new(bundle.trusted) })
    }

    /// What clients are shown.
    pub(super) fn shown(&self) -> Arc<Certificate> {
        Arc::clone(&self.shown)
    }

    /// Whom clients have to trust, now and later.
    pub(super) fn trusted(&self) -> watch::Receiver<String> {
        self.trusted.subscribe()
    }

    /// Renews the certificate in time, and takes over what others renewed.
    pub(super) async fn run(self, secret: Option<Informer<Secret>>, stop: CancellationToken) {
        let news = Arc::new(Notify::new());
        if let Some(secret) = &secret {
            let news = Arc::clone(&news);
            secret.on_change(move |_| news.notify_one());
        }
        let pause = if secret.is_some() { LOOK } else { LOOK_AT_FILES };
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = news.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            match current(&self.place, &self.holder, &self.clock).await {
                Ok(bundle) => self.show(bundle),
                // What is shown is good for weeks.
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "cannot look after the certificate of the webhooks");
                }
            }
        }
    }

    fn show(&self, bundle: Bundle) {
        let Bundle { trusted, serving, .. } = bundle;
        if let Err(error) = self.shown.replace(&serving.certificate, &serving.key) {
            tracing::warn!(%error, "the new certificate is not shown");
            return;
        }
        self.trusted.send_if_modified(|before| {
            let changed = *before != trusted;
            *before = trusted;
            changed
        });
    }
}

/// What is kept, renewed if need be.
async fn current(
    place: &Place,
    holder: &Holder,
    clock: &Clock,
) -> Result<Bundle, CertificateTrouble> {
    for _ in 0..RACES {
        let kept = place.load().await?;
        let wanted = match &kept {
            Some(Kept { bundle, foreign: true, .. }) => return Ok(bundle.clone()),
            None => Some(Bundle::generate(holder, clock)?),
            Some(Kept { bundle, .. }) => usable(bundle).renewed(holder, clock)?,
        };
        match (wanted, kept) {
            (None, Some(kept)) => return Ok(kept.bundle),
            (None, None) => {}
            (Some(wanted), kept) => {
                if place.save(&wanted, kept).await? {
                    tracing::info!(place = place.describe(), "renewed the webhooks' certificate");
                    return Ok(wanted);
                }
            }
        }
    }
    Err(CertificateTrouble::Contended)
}

/// The bundle without a certificate that could not be shown, so that another is made.
fn usable(bundle: &Bundle) -> Bundle {
    let Identity { certificate, key } = &bundle.serving;
    let mut bundle = bundle.clone();
    if Certificate::new(certificate, key).is_err() {
        bundle.serving = Identity { certificate: String::new(), key: String::new() };
    }
    bundle
}
