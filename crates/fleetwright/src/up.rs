//! `fleetwright up`: a Kubernetes API on this machine.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use fleetwright_apiserver::{
    Limits,
    controllers::NAMES,
    embedded::{Embedded, Settings, StoreLocation},
    tls::{ListenError, Listener},
};
use fleetwright_clock::{Clock, Random};
use fleetwright_runtime::{
    Tasks,
    config::{Config, ControllerNames},
};
use fleetwright_world::{
    embedded::World,
    fleet,
    simulation::{self, Pace},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    data_dir, kubeconfig, print_line,
    signals::{stop_signal, told},
};

/// The port of a Kubernetes API, where nothing else is said.
const DEFAULT_ADDRESS: &str = "127.0.0.1:6443";
/// How many Machines are worked on at the same time: nothing else needs this process.
const WORKERS: u32 = 16;
/// How long controllers may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  fleetwright up
  fleetwright up --in-memory --listen 127.0.0.1:0 --kubeconfig ./kubeconfig
  fleetwright up --data-dir /var/lib/fleetwright")]
pub(crate) struct UpArguments {
    /// Keep data in this folder [default: in the user's data folder].
    #[arg(long, value_name = "DIR", env = "FLEETWRIGHT_DATA_DIR", conflicts_with = "in_memory")]
    data_dir: Option<PathBuf>,
    /// Keep data in memory alone: it is gone when the process ends.
    #[arg(long)]
    in_memory: bool,
    /// Listen on this address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_ADDRESS, env = "FLEETWRIGHT_LISTEN")]
    listen: SocketAddr,
    /// Write the kubeconfig to this file [default: kubeconfig in the data folder].
    #[arg(long, value_name = "FILE", env = "FLEETWRIGHT_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Serve the Kubernetes API alone: no clouds, no nodes, no machine controllers.
    #[arg(long)]
    api_only: bool,
    /// How many times as fast as usual simulated things happen (instances that boot, nodes that
    /// join); timeouts of the product stay as they are.
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Controllers to run: `*` for all, `-NAME` for all but one.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true,
        value_parser = controller_name
    )]
    controllers: Vec<String>,
    /// Also accept the bearer tokens in this file, one `token,user,uid,"group1,group2"` a line.
    #[arg(long, value_name = "FILE", hide = true)]
    token_file: Option<PathBuf>,
}

pub(crate) fn run(arguments: UpArguments) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(serve(arguments))
}

async fn serve(arguments: UpArguments) -> anyhow::Result<()> {
    let UpArguments {
        data_dir,
        in_memory,
        listen,
        kubeconfig,
        api_only,
        speed,
        controllers,
        token_file,
    } = arguments;
    let controllers = ControllerNames(controllers);
    let clock = Clock::system();
    let folder = match (in_memory, data_dir) {
        (true, _) => None,
        (false, Some(folder)) => Some(absolute(&folder)?),
        (false, None) => Some(data_dir::default_path()?),
    };
    if let Some(folder) = &folder {
        data_dir::prepare(folder)?;
    }
    let kubeconfig_path = match (kubeconfig, &folder) {
        (Some(path), _) => absolute(&path)?,
        (None, Some(folder)) => folder.join("kubeconfig"),
        (None, None) => {
            std::env::temp_dir().join(format!("fleetwright-{}.kubeconfig", std::process::id()))
        }
    };
    let tokens = match &token_file {
        None => String::new(),
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the token file {}", path.display()))?,
    };
    let location = match &folder {
        None => StoreLocation::Memory,
        Some(folder) => StoreLocation::Folder(folder.clone()),
    };
    // The store is opened first: its lock keeps a second process from touching the folder.
    let certificates_folder = folder.clone();
    let embedded = Embedded::open(location, &clock)?;
    let certificates = data_dir::certificates(certificates_folder.as_deref(), &clock)?;
    let wanted = controllers.clone();
    let settings = Settings {
        clock: clock.clone(),
        random: Random::from_os(),
        limits: Limits::default(),
        tokens,
        service_account_key: certificates.service_accounts.clone(),
        authority: certificates.authority.clone(),
        controllers: Box::new(move |name| wanted.enabled(name, true)),
    };
    let listener = Listener::bind(listen, &certificates.server, &certificates.authority)
        .await
        .map_err(|error| listen_error(error, listen))?;
    let address = listener.address().context("cannot tell the address that was taken")?;
    let running = embedded.start(settings).await?;
    let url = format!("https://{address}");
    kubeconfig::write(&kubeconfig_path, &url, &certificates.authority, &certificates.admin)?;
    let stop = CancellationToken::new();
    let mut tasks = Tasks::new(stop.clone());
    let clouds = if api_only {
        None
    } else {
        let world = World {
            clock,
            random: Random::from_os(),
            pace: Pace::Times(speed),
            controllers,
            config: Config { workers: WORKERS, ..Config::default() },
            clouds: TcpListener::bind((listen.ip(), 0))
                .await
                .context("cannot find a free port for the simulated clouds")?,
            journal: folder.as_ref().map(|folder| folder.join("aws.journal")),
        };
        Some(world.start(&running, &mut tasks).await?)
    };
    announce(&url, folder.as_deref(), &kubeconfig_path, clouds.as_deref())?;

    let server = running.server().clone();
    let serving = listener.serve(server.clone());
    tokio::pin!(serving);
    let work = tasks.run(STOP_LIMIT);
    tokio::pin!(work);
    let ended = tokio::select! {
        () = &mut serving => bail!("the listener ended unexpectedly"),
        signal = stop_signal() => {
            signal?;
            stop.cancel();
            work.await
        }
        // Only a task that ended by itself.
        ended = &mut work, if clouds.is_some() => ended,
    };
    server.stop();
    serving.await;
    running.stop().await;
    ended.map_err(|failures| told(&failures))?;
    if folder.is_none() {
        // The credentials in it are worth nothing without the process.
        let _ = std::fs::remove_file(&kubeconfig_path);
    }
    Ok(())
}

/// Reads a value for `--speed`.
fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && times > 0.0 => Ok(times),
        _ => Err("say how many times as fast, such as 10 or 0.5".to_owned()),
    }
}

/// Reads one of the names for `--controllers`.
fn controller_name(text: &str) -> Result<String, String> {
    let names: Vec<&str> = [NAMES, fleet::NAMES, simulation::NODE_NAMES].concat();
    let unknown = ControllerNames(vec![text.to_owned()]).unknown(&names);
    let Some((name, nearest)) = unknown.first() else { return Ok(text.to_owned()) };
    let hint = nearest.as_ref().map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
    Err(format!("there is no controller named {name}{hint}; there are: {}", names.join(", ")))
}

/// The path for a message that is still right in another folder.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot tell where {} is", path.display()))
}

fn announce(
    url: &str,
    folder: Option<&Path>,
    kubeconfig: &Path,
    clouds: Option<&str>,
) -> anyhow::Result<()> {
    let data = folder.map_or_else(|| "in memory".to_owned(), |folder| folder.display().to_string());
    let (clouds, next) = match clouds {
        None => ("none".to_owned(), "get namespaces"),
        Some(url) => (format!("AWS at {url} (simulated)"), "apply -f examples/placement-groups/"),
    };
    print_line(&format!(
        "Fleetwright is up at {url}
  data        {data}
  kubeconfig  {}
  clouds      {clouds}
  next        export KUBECONFIG={} && kubectl {next}",
        kubeconfig.display(),
        kubeconfig.display(),
    ))
}

fn listen_error(error: ListenError, address: SocketAddr) -> anyhow::Error {
    let in_use = matches!(
        &error,
        ListenError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse
    );
    if in_use {
        anyhow::anyhow!(
            "port {} on {} is in use by another process: stop it, or choose another one with --listen {}:PORT (0 for a free one)",
            address.port(),
            address.ip(),
            address.ip()
        )
    } else {
        error.into()
    }
}
