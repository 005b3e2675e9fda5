//! The real thing: etcd, kube-apiserver, kube-controller-manager, and a scheduler on demand.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{Access, Cluster, Pending, binaries, token_file, tokens};
use crate::certificates::Certificates;
use crate::http_client::{Client, Request, post_plainly};
use crate::process::Supervised;

/// A server is ready in 2 to 4 seconds; a busy machine may take ten times as long.
const START_LIMIT: Duration = Duration::from_secs(90);

/// The controllers whose work the embedded API does itself. The others (deployments, jobs, ...)
/// would change objects behind a script's back.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,\
    disruption-controller,clusterrole-aggregation-controller,serviceaccount-controller,\
    root-ca-certificate-publisher-controller";

/// What to start, and how.
#[derive(Debug, Clone)]
pub struct RealOptions {
    /// Runs kube-controller-manager, for garbage collection, namespaces and disruption budgets.
    pub controllers: bool,
    /// Which controllers it runs; see `--controllers` of kube-controller-manager.
    pub controller_names: String,
    /// Runs kube-scheduler.
    pub scheduler: bool,
    /// Lets etcd wait for the disk. Tests do not need it; benchmarks do.
    pub durable: bool,
    /// `--authorization-mode`.
    pub authorization: String,
    /// More flags for kube-apiserver.
    pub extra_flags: Vec<String>,
}

impl Default for RealOptions {
    fn default() -> Self {
        Self {
            controllers: true,
            controller_names: CONTROLLERS.to_owned(),
            scheduler: false,
            durable: false,
            authorization: "Node,RBAC".to_owned(),
            extra_flags: Vec::new(),
        }
    }
}

/// A real control plane on loopback. Everything ends with the value.
#[derive(Debug)]
pub struct RealCluster {
    // Fields drop in this order: the clients of etcd before etcd, the folder last.
    processes: Vec<Supervised>,
    access: Access,
    binaries: PathBuf,
    etcd: String,
    folder: TempDir,
}

impl RealCluster {
    /// Starts etcd, kube-apiserver and kube-controller-manager and waits until they are ready.
    pub async fn start() -> Result<Self> {
        Self::start_with(&RealOptions::default()).await
    }

    /// Starts what the options say.
    pub async fn start_with(options: &RealOptions) -> Result<Self> {
        let binaries = binaries::referees()?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let path = folder.path();
        let certificates = Certificates::make(path)?;
        fs::write(path.join("tokens.csv"), token_file()).context("cannot write the token file")?;

        let [etcd_port, peer_port, api_port, manager_port, scheduler_port] = free_ports()?;
        let access = Access {
            url: format!("https://127.0.0.1:{api_port}"),
            authority: certificates.authority.clone(),
            admin_certificate: certificates.admin_certificate.clone(),
            admin_key: certificates.admin_key.clone(),
            kubeconfig: path.join("kubeconfig"),
            tokens: tokens(),
        };
        access.write_kubeconfig()?;

        let start = |name: &str, flags: &[String]| {
            Supervised::start(name, &binaries.join(name), flags, path)
        };
        let etcd = start("etcd", &etcd_flags(etcd_port, peer_port, options.durable))?;
        let server =
            start("kube-apiserver", &server_flags(etcd_port, api_port, &certificates, options))?;
        let mut cluster = Self {
            processes: vec![server, etcd],
            access,
            binaries: binaries.clone(),
            etcd: format!("127.0.0.1:{etcd_port}"),
            folder,
        };
        cluster.wait_until_ready("/readyz").await?;

        // Inserted in front: what was started last is stopped first.
        if options.controllers {
            let flags = manager_flags(manager_port, &certificates, options);
            let manager = Supervised::start(
                "kube-controller-manager",
                &binaries.join("kube-controller-manager"),
                &flags,
                cluster.folder.path(),
            )?;
            cluster.processes.insert(0, manager);
        }
        if options.scheduler {
            let scheduler = Supervised::start(
                "kube-scheduler",
                &binaries.join("kube-scheduler"),
                &scheduler_flags(scheduler_port),
                cluster.folder.path(),
            )?;
            cluster.processes.insert(0, scheduler);
        }
        if options.controllers {
            cluster.wait_for_controllers().await?;
        }
        Ok(cluster)
    }

    /// The folder of kubectl and the others.
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// Process identifiers by program, for measurements.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.iter().map(Supervised::id).collect()
    }

    async fn wait_until_ready(&mut self, path: &str) -> Result<()> {
        let client = Client::new(&self.access)?;
        let deadline = Instant::now() + START_LIMIT;
        loop {
            for process in &mut self.processes {
                process.check()?;
            }
            let answer = client.send(&Request::get(path)).await;
            if answer.is_ok_and(|response| response.status == 200) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let logs: Vec<String> = self.processes.iter().map(Supervised::log_tail).collect();
                bail!("the real server is not ready in time:\n{}", logs.join("\n---\n"));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The controllers answer no simple question, so one of them is watched at work: a fresh
    /// namespace that is deleted goes away only when they run.
    async fn wait_for_controllers(&mut self) -> Result<()> {
        const PROBE: &str = "/api/v1/namespaces/referee-probe";
        let client = Client::new(&self.access)?;
        let body = r#"{"metadata": {"name": "referee-probe"}}"#;
        client.send(&Request::new("POST", "/api/v1/namespaces").json(body)).await?;
        client.send(&Request::new("DELETE", PROBE)).await?;
        let deadline = Instant::now() + START_LIMIT;
        while client.send(&Request::get(PROBE)).await?.status != 404 {
            for process in &mut self.processes {
                process.check()?;
            }
            if Instant::now() > deadline {
                bail!("kube-controller-manager does not work:\n{}", self.processes[0].log_tail());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Cluster for RealCluster {
    fn name(&self) -> &'static str {
        "real"
    }

    fn access(&self) -> &Access {
        &self.access
    }

    fn forget(&self) -> Pending<'_> {
        Box::pin(compact(&self.etcd))
    }
}

/// Does what kube-apiserver does every five minutes. It reads from a key how much is gone, and
/// its caches ask for that every 15 seconds.
async fn compact(etcd: &str) -> Result<()> {
    const KEY: &str = "compact_rev_key";
    let ask = async |what: &str, body: Value| -> Result<Value> {
        let answer = post_plainly(etcd, &format!("/v3/kv/{what}"), &body.to_string()).await?;
        ensure!(answer.status == 200, "etcd refuses: {}", answer.text());
        Ok(answer.value())
    };
    let now = ask("range", json!({"key": BASE64.encode(KEY)})).await?;
    let revision = now["header"]["revision"].as_str().context("etcd told no revision")?;
    ask("put", json!({"key": BASE64.encode(KEY), "value": BASE64.encode(revision)})).await?;
    ask("compaction", json!({"revision": revision})).await?;
    Ok(())
}

fn etcd_flags(client_port: u16, peer_port: u16, durable: bool) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut flags = vec![
        "--name=referee".to_owned(),
        "--data-dir=etcd-data".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=referee={peer}"),
        "--watch-progress-notify-interval=5s".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    if !durable {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

fn server_flags(
    etcd_port: u16,
    port: u16,
    certificates: &Certificates,
    options: &RealOptions,
) -> Vec<String> {
    let file = |path: &Path| path.display().to_string();
    let mut flags = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file(&certificates.server_certificate_file)),
        format!("--tls-private-key-file={}", file(&certificates.server_key_file)),
        format!("--client-ca-file={}", file(&certificates.authority_file)),
        "--token-auth-file=tokens.csv".to_owned(),
        format!("--authorization-mode={}", options.authorization),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file(&certificates.checking_key_file)),
        format!("--service-account-signing-key-file={}", file(&certificates.signing_key_file)),
        "--service-cluster-ip-range=10.96.0.0/12".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
        "--cert-dir=apiserver-certificates".to_owned(),
    ];
    flags.extend(options.extra_flags.iter().cloned());
    flags
}

fn manager_flags(port: u16, certificates: &Certificates, options: &RealOptions) -> Vec<String> {
    vec![
        "--kubeconfig=kubeconfig".to_owned(),
        "--authentication-kubeconfig=kubeconfig".to_owned(),
        "--authorization-kubeconfig=kubeconfig".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=manager-certificates".to_owned(),
        "--leader-elect=false".to_owned(),
        format!("--controllers={}", options.controller_names),
        format!("--root-ca-file={}", certificates.authority_file.display()),
        // A script creates kinds and expects their garbage to be collected soon after; the
        // default client limits are made for clusters that share a server.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=500".to_owned(),
    ]
}

fn scheduler_flags(port: u16) -> Vec<String> {
    vec![
        "--kubeconfig=kubeconfig".to_owned(),
        "--authentication-kubeconfig=kubeconfig".to_owned(),
        "--authorization-kubeconfig=kubeconfig".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=scheduler-certificates".to_owned(),
        "--leader-elect=false".to_owned(),
    ]
}

/// Ports that were free a moment ago. All are held until all are known, so they differ.
fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listeners: Vec<TcpListener> = (0..N)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<Result<_, _>>()
        .context("no free port on loopback")?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().context("a listener without an address")?.port();
    }
    Ok(ports)
}
