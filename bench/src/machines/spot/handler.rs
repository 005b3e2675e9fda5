//! The memory of `fleetwright termination-handler` while there is no notice.

use std::{fmt::Write, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result};
use fleetwright_referees::process::Supervised;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::PostParams};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

use super::up::Up;
use crate::{
    machines::{Scale, verdict},
    procfs,
};

/// The aim, in megabytes.
const WANTED: f64 = 20.0;
/// The Node on which it runs.
const NODE: &str = "ip-10-0-1-7.ec2.internal";

/// Measures, and says what came out.
pub(crate) async fn measure(scale: &Scale, fleetwright: &Path) -> Result<String> {
    let up = Up::start(fleetwright, &["--api-only"]).await?;
    let api: Api<Node> = Api::all(up.client.clone());
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    let node: Node = serde_json::from_value(node)?;
    api.create(&PostParams::default(), &node).await.context("cannot create the Node")?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot serve metadata")?;
    let metadata = format!("http://{}", listener.local_addr()?);
    let mut served = JoinSet::new();
    served.spawn(serve(listener));

    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut command = Command::new(fleetwright);
    command
        .args(["termination-handler", "--node-name", NODE, "--listen", "127.0.0.1:0"])
        .args(["--metadata-endpoint", &metadata, "--kubeconfig"])
        .arg(up.kubeconfig())
        .current_dir(folder.path());
    let mut process = Supervised::spawn("handler", &mut command, folder.path())?;
    let id = process.id();
    sleep(scale.handled).await;
    let before = procfs::processor_time(id)?;
    sleep(scale.handled).await;
    process.check().context("the handler ended")?;
    let cpu = procfs::processor_time(id)?.saturating_sub(before);
    let memory = procfs::mapped(id)?;
    report(&memory, procfs::most_resident(id)?, procfs::threads(id)?, (cpu, scale.handled))
}

fn report(
    memory: &procfs::Mapped,
    most: u64,
    threads: u64,
    (cpu, window): (Duration, Duration),
) -> Result<String> {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let mut text = String::new();
    writeln!(
        text,
        "## The termination handler at rest

`fleetwright termination-handler` with a metadata service that answers 404 to the question for a spot
action, {:.0} seconds after its start, with its usual interval. The API server is `fleetwright up`, which
is the same program: pages of the file that both have mapped count in full for each.

| | figure |
|---|---|
| resident memory (Rss) | {:.1} MB |
| of it the program's file and libraries | {:.1} MB |
| of it its own (anonymous) | {:.1} MB |
| its own by share (Pss_Anon) | {:.1} MB |
| the most it ever had | {:.1} MB |
| threads | {threads} |
| processor | {:.2} % of a core |

Aim: below {WANTED:.0} MB resident: {}.",
        2.0 * window.as_secs_f64(),
        megabytes(memory.resident),
        megabytes(memory.resident.saturating_sub(memory.anonymous)),
        megabytes(memory.anonymous),
        megabytes(memory.own_share),
        megabytes(most),
        100.0 * cpu.as_secs_f64() / window.as_secs_f64(),
        verdict(megabytes(memory.resident) < WANTED),
    )?;
    Ok(text)
}

/// A metadata service of an instance that stays.
async fn serve(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream));
    }
}

/// Answers one request after the other; who breaks off is gone.
async fn converse(mut stream: TcpStream) -> Option<()> {
    let mut read = Vec::new();
    loop {
        while let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).into_owned();
            read.drain(..end + 4);
            stream.write_all(answer(&head).as_bytes()).await.ok()?;
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

/// A token for whoever asks for one, and nothing else.
fn answer(head: &str) -> String {
    let ttl = "x-aws-ec2-metadata-token-ttl-seconds: 21600";
    let (status, header, body) = if head.starts_with("PUT /latest/api/token ") {
        ("200 OK", ttl, "bench")
    } else {
        ("404 Not Found", "x-bench: none", "")
    };
    format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_token_and_no_notice() {
        let token = answer("PUT /latest/api/token HTTP/1.1\r\nhost: x");
        assert!(token.starts_with("HTTP/1.1 200") && token.ends_with("\r\n\r\nbench"), "{token}");
        let action = answer("GET /latest/meta-data/spot/instance-action HTTP/1.1");
        assert!(action.starts_with("HTTP/1.1 404"), "{action}");
    }

    #[test]
    fn the_aim_is_about_all_resident_memory() {
        let said = |resident: u64| {
            let memory = procfs::Mapped { resident, anonymous: 1_000_000, own_share: 1_000_000 };
            report(&memory, resident, 1, (Duration::ZERO, Duration::from_secs(1))).unwrap()
        };
        assert!(said(19_900_000).contains("resident: met"));
        assert!(said(20_000_000).contains("resident: **not met**"));
    }
}
