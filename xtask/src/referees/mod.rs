//! Builds the referees: real programs whose behaviour ours must match.
//!
//! They come from the Go modules pinned in `tools/referees/go.mod` and land in
//! `~/.cache/fleetwright/referees/<hash of go.sum>`, outside the clone, so that a fresh clone
//! reuses them. Nothing is skipped in silence: what cannot be built is a failure.
//!
//! With `--metadata` it is the folder of AWS's own metadata mock, pinned in `tools/metadata/go.mod`.
//!
//! With `--autoscaler` it is that of the cluster-autoscaler, pinned in `tools/autoscaler/go.mod`.
//!
//! With `--crds` it is the folder of the Go module pinned in `tools/crds/go.mod`, whose
//! CustomResourceDefinitions ours must match.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

mod go;

/// A program to build.
struct Referee {
    /// Its file name.
    name: &'static str,
    /// Its Go package.
    package: &'static str,
    /// Build tags, with commas; none if empty.
    tags: &'static str,
}

impl Referee {
    const fn new(name: &'static str, package: &'static str) -> Self {
        Self { name, package, tags: "" }
    }
}

/// The Kubernetes programs, in the order in which they are built: the quick ones first, so that a
/// broken tool chain shows at once.
const REFEREES: [Referee; 5] = [
    Referee::new("etcd", "go.etcd.io/etcd/server/v3"),
    Referee::new("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Referee::new("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Referee::new("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Referee::new("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
];

/// The mock of the instance metadata service.
const METADATA: [Referee; 1] =
    [Referee::new("ec2-metadata-mock", "github.com/aws/amazon-ec2-metadata-mock/cmd")];

/// The autoscaler, with the one cloud provider that scales MachineSets: all of them together are
/// ten times as much to build.
const AUTOSCALER: [Referee; 1] = [Referee {
    name: "cluster-autoscaler",
    package: "k8s.io/autoscaler/cluster-autoscaler",
    tags: "clusterapi",
}];

/// The Go module with the definitions of the kinds of `machine.openshift.io`.
const CRD_MODULE: &str = "github.com/openshift/api";

/// The variable that kubebuilder's users already set when they have binaries of their own.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Runs the chore: prints progress on stderr and the folder as the last line of stdout.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let folder = match arguments {
        [] => match env::var_os(ASSETS).filter(|value| !value.is_empty()) {
            Some(folder) => given(PathBuf::from(folder))?,
            None => built("tools/referees", &REFEREES)?,
        },
        [only] if only == "--crds" => crd_files()?,
        [only] if only == "--metadata" => built("tools/metadata", &METADATA)?,
        [only] if only == "--autoscaler" => built("tools/autoscaler", &AUTOSCALER)?,
        _ => bail!(
            "`cargo xtask referees` takes no arguments, or --crds, --metadata or --autoscaler"
        ),
    };
    #[expect(clippy::print_stdout, reason = "the folder is the answer of this command")]
    {
        println!("{}", folder.display());
    }
    Ok(())
}

/// Downloads the module that holds the definitions of kinds which ours are compared with.
fn crd_files() -> Result<PathBuf> {
    let module = crate::repository().join("tools/crds");
    let manifest = fs::read_to_string(module.join("go.mod"))
        .with_context(|| format!("cannot read go.mod in {}", module.display()))?;
    go::find(&module, &manifest)?.download(&module, CRD_MODULE)
}

/// Uses binaries that somebody else provides; all of them must be there.
fn given(folder: PathBuf) -> Result<PathBuf> {
    let missing: Vec<&str> = REFEREES
        .iter()
        .map(|referee| referee.name)
        .filter(|name| !folder.join(name).is_file())
        .collect();
    ensure!(
        missing.is_empty(),
        "{ASSETS} is {}, which lacks {}; add them, or unset {ASSETS} to have all referees built",
        folder.display(),
        missing.join(", ")
    );
    eprintln!("referees: using {ASSETS}");
    Ok(folder)
}

/// Builds what is not yet in the cached folder.
fn built(module: &str, referees: &[Referee]) -> Result<PathBuf> {
    let module = crate::repository().join(module);
    let manifest = fs::read_to_string(module.join("go.mod"))
        .with_context(|| format!("cannot read go.mod in {}", module.display()))?;
    let folder = cached_folder(&module)?;
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;

    let flags = linker_flags(&manifest)?;
    let waiting: Vec<_> = referees
        .iter()
        .filter(|referee| !is_built(&folder, referee.name, &stamp(referee, &flags)))
        .collect();
    if waiting.is_empty() {
        return Ok(folder);
    }

    let go = go::find(&module, &manifest)?;
    for (done, referee) in waiting.iter().enumerate() {
        eprintln!(
            "referees: building {} ({} of {}; minutes from a cold cache)",
            referee.name,
            done + 1,
            waiting.len()
        );
        install(&go, &module, &folder, referee, &flags)?;
    }
    Ok(folder)
}

/// `~/.cache/fleetwright/referees/<first 16 hex digits of the hash of go.sum>`.
fn cached_folder(module: &Path) -> Result<PathBuf> {
    let sums = module.join("go.sum");
    let sums = fs::read(&sums).with_context(|| format!("cannot read {}", sums.display()))?;
    let digest = Sha256::digest(&sums);
    let mut name = format!("{digest:x}");
    name.truncate(16);
    let home = env::var_os("HOME").context("HOME is not set, so there is no cache folder")?;
    Ok(PathBuf::from(home).join(".cache/fleetwright/referees").join(name))
}

/// A binary counts only with a stamp that says how it was built: the stamp is written last,
/// so an interrupted build leaves nothing that looks whole.
fn is_built(folder: &Path, name: &str, stamp: &str) -> bool {
    folder.join(name).is_file()
        && fs::read_to_string(stamp_file(folder, name)).is_ok_and(|found| found == stamp)
}

fn stamp_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.stamp"))
}

fn stamp(referee: &Referee, flags: &str) -> String {
    format!("{}\n{flags}\n{}", referee.package, referee.tags)
}

fn install(
    go: &go::Toolchain,
    module: &Path,
    folder: &Path,
    referee: &Referee,
    flags: &str,
) -> Result<()> {
    let name = referee.name;
    // Built under a name of its own and renamed: whoever uses an older binary of that name keeps
    // it, and two builds at once cannot spoil each other.
    let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
    let result = go.build(module, referee, flags, &unfinished).and_then(|()| {
        fs::rename(&unfinished, folder.join(name))
            .with_context(|| format!("cannot move {name} into {}", folder.display()))?;
        let stamp_file = stamp_file(folder, name);
        fs::write(&stamp_file, stamp(referee, flags))
            .with_context(|| format!("cannot write {}", stamp_file.display()))
    });
    if result.is_err() {
        // The build's own error matters more than a file that may not even exist.
        drop(fs::remove_file(&unfinished));
    }
    result
}

/// The version that the programs report; without it clients see `v0.0.0-master`.
fn linker_flags(manifest: &str) -> Result<String> {
    if !manifest.contains("k8s.io/kubernetes ") {
        return Ok("-s -w".to_owned());
    }
    let version = required_version(manifest, "k8s.io/kubernetes")?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        bail!("the version of k8s.io/kubernetes in go.mod is not like v1.2.3: {version}");
    };
    let settings = [
        ("gitVersion", version),
        ("gitMajor", major),
        ("gitMinor", minor),
        ("gitTreeState", "clean"),
        ("gitCommit", "fleetwright-referee"),
    ];
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let mut flags = vec!["-s -w".to_owned()];
    for package in packages {
        flags.extend(settings.map(|(key, value)| format!("-X {package}.{key}={value}")));
    }
    Ok(flags.join(" "))
}

/// The version that go.mod requires of a module.
fn required_version<'a>(manifest: &'a str, module: &str) -> Result<&'a str> {
    manifest
        .lines()
        .map(|line| line.trim().trim_start_matches("require "))
        .filter(|line| !line.contains("=>"))
        .find_map(|line| line.strip_prefix(module)?.strip_prefix(' ')?.split_whitespace().next())
        .with_context(|| format!("tools/referees/go.mod does not require {module}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "module x\n\ngo 1.26.0\n\ntool (\n\tk8s.io/kubernetes/cmd/kubectl\n)\n\nrequire (\n\tk8s.io/api v0.37.1\n\
        \tk8s.io/kubernetes v1.37.1 // indirect\n)\n\
        replace k8s.io/kubernetes => ../x\n";

    #[test]
    fn the_version_comes_from_go_mod() {
        assert_eq!(required_version(MANIFEST, "k8s.io/kubernetes").unwrap(), "v1.37.1");
        assert!(required_version(MANIFEST, "k8s.io/absent").is_err());
        let flags = linker_flags(MANIFEST).unwrap();
        assert!(flags.contains("component-base/version.gitVersion=v1.37.1"), "{flags}");
        assert!(flags.contains("client-go/pkg/version.gitMinor=37"), "{flags}");
    }

    #[test]
    fn a_binary_without_its_stamp_is_not_built() {
        let folder = env::temp_dir().join(format!("xtask-stamps-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("etcd"), "half").unwrap();
        assert!(!is_built(&folder, "etcd", "stamp"));
        fs::write(stamp_file(&folder, "etcd"), "older stamp").unwrap();
        assert!(!is_built(&folder, "etcd", "stamp"));
        fs::write(stamp_file(&folder, "etcd"), "stamp").unwrap();
        assert!(is_built(&folder, "etcd", "stamp"));
        fs::remove_file(folder.join("etcd")).unwrap();
        assert!(!is_built(&folder, "etcd", "stamp"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn provided_binaries_must_be_complete() {
        let folder = env::temp_dir().join(format!("xtask-assets-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["etcd", "kube-apiserver", "kubectl"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let error = given(folder.clone()).unwrap_err().to_string();
        assert!(error.contains("kube-controller-manager, kube-scheduler"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
