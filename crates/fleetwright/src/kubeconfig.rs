//! The kubeconfig that `fleetwright up` writes.

use std::{io::Write, path::Path};

use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use fleetwright_apiserver::tls::Identity;

/// Writes a kubeconfig, all at once and readable by its owner alone.
pub(crate) fn write(
    path: &Path,
    url: &str,
    authority: &str,
    user: &Identity,
) -> anyhow::Result<()> {
    let text = format!(
        "apiVersion: v1
kind: Config
current-context: fleetwright
clusters:
- name: fleetwright
  cluster:
    server: {url}
    certificate-authority-data: {}
users:
- name: fleetwright-admin
  user:
    client-certificate-data: {}
    client-key-data: {}
contexts:
- name: fleetwright
  context:
    cluster: fleetwright
    user: fleetwright-admin
",
        BASE64_STANDARD.encode(authority),
        BASE64_STANDARD.encode(&user.certificate),
        BASE64_STANDARD.encode(&user.key),
    );
    write_private(path, text.as_bytes())
        .with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}

/// Writes a file that only its owner may read, so that readers see all of it or nothing.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_private_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/kubeconfig");
        let user = Identity { certificate: "c".to_owned(), key: "k".to_owned() };
        write(&path, "https://127.0.0.1:6443", "ca", &user).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("server: https://127.0.0.1:6443"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
