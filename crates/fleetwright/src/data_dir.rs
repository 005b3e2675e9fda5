//! The folder that `fleetwright up` keeps its data in.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use fleetwright_apiserver::tls::{Authority, Identity};
use fleetwright_clock::Clock;

use crate::kubeconfig::write_private;

/// What the server presents and trusts.
pub(crate) struct Certificates {
    /// The authority's certificate.
    pub authority: String,
    /// The server's.
    pub server: Identity,
    /// The administrator's.
    pub admin: Identity,
    /// Signs the tokens of service accounts.
    pub service_accounts: Vec<u8>,
}

/// The folder for data unless the user says otherwise.
pub(crate) fn default_path() -> anyhow::Result<PathBuf> {
    directories::ProjectDirs::from("dev", "fleetwright", "fleetwright")
        .map(|dirs| dirs.data_dir().to_owned())
        .context("cannot tell where this user's data goes: name a folder with --data-dir DIR")
}

/// Makes the folder if it is not there.
pub(crate) fn prepare(path: &Path) -> anyhow::Result<()> {
    match std::fs::create_dir_all(path) {
        Ok(()) => {}
        Err(error)
            if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) =>
        {
            bail!(
                "the data folder {} is not a folder: name another one with --data-dir DIR",
                path.display()
            );
        }
        Err(error) => {
            return Err(error).with_context(|| explain(path, "cannot make the data folder"));
        }
    }
    let probe = path.join(".writable");
    write_private(&probe, b"")
        .and_then(|()| std::fs::remove_file(&probe))
        .with_context(|| explain(path, "cannot write into the data folder"))
}

fn explain(path: &Path, what: &str) -> String {
    format!(
        "{what} {}: it must be on a disk that is writable and has space; name another one with --data-dir DIR, or use --in-memory",
        path.display()
    )
}

/// Reads the certificates in the folder, making what is missing or nearly over. Without a
/// folder, everything is new.
pub(crate) fn certificates(folder: Option<&Path>, clock: &Clock) -> anyhow::Result<Certificates> {
    let load = |name: &str| -> Option<Identity> {
        let folder = folder?.join("pki");
        let read = |ending: &str| std::fs::read_to_string(folder.join(format!("{name}.{ending}")));
        let identity = Identity { certificate: read("crt").ok()?, key: read("key").ok()? };
        identity.is_fresh(clock.now()).then_some(identity)
    };
    let save = |name: &str, identity: &Identity| -> anyhow::Result<()> {
        let Some(folder) = folder else { return Ok(()) };
        for (ending, text) in [("crt", &identity.certificate), ("key", &identity.key)] {
            let path = folder.join("pki").join(format!("{name}.{ending}"));
            write_private(&path, text.as_bytes())
                .with_context(|| explain(folder, "cannot save a certificate in the data folder"))?;
        }
        Ok(())
    };

    let (authority, is_new) = match load("ca") {
        Some(identity) => (Authority::load(identity, clock), false),
        None => (Authority::generate(clock)?, true),
    };
    if is_new {
        save("ca", &authority.identity)?;
    }
    let issue = |name: &str, make: &dyn Fn() -> anyhow::Result<Identity>| {
        // What another authority signed is of no use.
        if let Some(identity) = load(name).filter(|_| !is_new) {
            return Ok(identity);
        }
        let identity = make()?;
        save(name, &identity)?;
        anyhow::Ok(identity)
    };
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let server = issue("server", &|| Ok(authority.server(&["localhost"], &addresses)?))?;
    let admin = issue("admin", &|| Ok(authority.client("fleetwright:admin", "system:masters")?))?;
    let service_accounts = service_account_key(folder)?;
    Ok(Certificates { authority: authority.identity.certificate, server, admin, service_accounts })
}

fn service_account_key(folder: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let path = folder.map(|folder| folder.join("pki").join("service-accounts.key"));
    if let Some(key) = path.as_ref().and_then(|path| std::fs::read(path).ok()) {
        return Ok(key);
    }
    let key = fleetwright_apiserver::auth::authn::signing::SigningKey::generate()
        .context("cannot make the key of service accounts")?
        .pkcs8()
        .to_vec();
    if let (Some(path), Some(folder)) = (&path, folder) {
        write_private(path, &key)
            .with_context(|| explain(folder, "cannot save a key in the data folder"))?;
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let first = certificates(Some(folder.path()), &clock).unwrap();
        let second = certificates(Some(folder.path()), &clock).unwrap();
        assert_eq!(first.authority, second.authority);
        assert_eq!(first.admin.certificate, second.admin.certificate);
        std::fs::remove_file(folder.path().join("pki/ca.key")).unwrap();
        let third = certificates(Some(folder.path()), &clock).unwrap();
        assert_ne!(first.authority, third.authority);
        assert_ne!(first.server.certificate, third.server.certificate);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, "").unwrap();
        let error = format!("{:#}", prepare(&path).unwrap_err());
        assert!(error.contains("is not a folder") && error.contains("--data-dir"), "{error}");
    }
}
