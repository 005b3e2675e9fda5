//! boto3 and moto judge the simulated AWS, over a socket.

use std::process::Command;

use fleetwright_clock::{Clock, Random};
use fleetwright_referees::python;
use fleetwright_simcloud::aws::{
    Aws,
    model::settings::{Delays, Settings, Throttling},
    seed::{Installed, Installer},
};
use tokio::net::TcpListener;

/// Quick enough to wait for, and slow enough to see.
const SPEED: f64 = 50.0;

/// Serves a cloud while a program judges it.
async fn judged_by(program: &str) -> anyhow::Result<()> {
    let settings = Settings {
        delays: Delays::default().faster(SPEED),
        throttling: Throttling::off(),
        ..Settings::default()
    };
    let installer = Installer::new("demo", Random::seeded(1)).settings(settings);
    let (aws, installed) = installer.install(Clock::system());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let program = program.to_owned();
    let judge = tokio::task::spawn_blocking(move || judge(&program, &endpoint, &installed));
    tokio::select! {
        failed = fleetwright_simcloud::serve(listener, aws.clone()) => failed.map(|_| ()).map_err(Into::into),
        () = Aws::run(&aws) => Ok(()),
        verdict = judge => verdict?,
    }
}

fn judge(program: &str, endpoint: &str, installed: &Installed) -> anyhow::Result<()> {
    let installed = serde_json::json!({
        "access_key": installed.access_key,
        "secret_key": installed.secret_key,
        "images": installed.images,
        "subnets": installed.subnets,
        "worker_group": installed.worker_group,
        "worker_profile": installed.worker_profile,
        "key_name": installed.key_name,
        "vpc": installed.vpc,
    });
    let mut command = Command::new(python::interpreter()?);
    command
        .arg(python::folder().join(program))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SIMCLOUD_ENDPOINT", endpoint)
        .env("SIMCLOUD_INSTALLED", installed.to_string());
    eprintln!("{}", python::run(&mut command)?);
    Ok(())
}

#[test]
fn requests_are_checked_against_the_description() -> anyhow::Result<()> {
    let call = |parameters| {
        let action = "DescribeInstances";
        serde_json::json!([{
            "sequence": 1, "version": "2016-11-15", "action": action, "parameters": parameters
        }])
    };
    python::check_requests(&call(serde_json::json!({"Filter.1.Name": "x", "MaxResults": "5"})))?;
    for (wrong, problem) in [
        (serde_json::json!({"Filters.1.Name": "x"}), "there is no Filters"),
        (serde_json::json!({"Filter.2.Name": "x"}), "numbered from 1"),
        (serde_json::json!({"MaxResults": "many"}), "not a integer"),
    ] {
        let said = python::check_requests(&call(wrong)).unwrap_err().to_string();
        assert!(said.contains(problem), "{said}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boto3_drives_every_operation() -> anyhow::Result<()> {
    judged_by("boto3_drives.py").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moto_agrees() -> anyhow::Result<()> {
    judged_by("moto_agrees.py").await
}
