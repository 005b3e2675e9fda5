//! What Linux knows about processes: memory, processor time, start.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// The unit of times in `/proc`, which Linux fixes at 100 to the second for programs.
const TICK: Duration = Duration::from_millis(10);

/// Resident memory of a process, in bytes.
pub(crate) fn resident(process: u32) -> Result<u64> {
    status_bytes(process, "VmRSS:")
}

/// The most resident memory that a process ever had, in bytes.
pub(crate) fn most_resident(process: u32) -> Result<u64> {
    status_bytes(process, "VmHWM:")
}

/// Memory of a process by where it comes from, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// All that is resident.
    pub(crate) resident: u64,
    /// What comes from no file.
    pub(crate) anonymous: u64,
    /// The same, with what others share counted by share.
    pub(crate) own_share: u64,
}

/// Memory of a process by where it comes from.
pub(crate) fn mapped(process: u32) -> Result<Mapped> {
    mapped_of(&read(&format!("/proc/{process}/smaps_rollup"))?)
}

fn mapped_of(text: &str) -> Result<Mapped> {
    Ok(Mapped {
        resident: kilobytes(text, "Rss:")?,
        anonymous: kilobytes(text, "Anonymous:")?,
        own_share: kilobytes(text, "Pss_Anon:")?,
    })
}

/// How many threads a process has.
pub(crate) fn threads(process: u32) -> Result<u64> {
    let text = read(&format!("/proc/{process}/status"))?;
    let count = text.lines().find_map(|line| line.strip_prefix("Threads:"));
    count.and_then(|count| count.trim().parse().ok()).context("/proc names no threads")
}

fn status_bytes(process: u32, name: &str) -> Result<u64> {
    kilobytes(&read(&format!("/proc/{process}/status"))?, name)
}

/// The bytes in a line of `/proc` that counts in kilobytes.
fn kilobytes(text: &str, name: &str) -> Result<u64> {
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .with_context(|| format!("/proc says nothing of {name}"))?;
    Ok(kilobytes * 1024)
}

/// Processor time that a process has used, in user and kernel mode.
pub(crate) fn processor_time(process: u32) -> Result<Duration> {
    let text = read(&format!("/proc/{process}/stat"))?;
    // User and kernel time are the fields 14 and 15.
    let [user, kernel] = [14, 15].map(|number| stat_field(&text, number));
    Ok(ticks(user? + kernel?))
}

/// How long ago a process was started.
pub(crate) fn age(process: u32) -> Result<Duration> {
    let started = ticks(stat_field(&read(&format!("/proc/{process}/stat"))?, 22)?);
    let uptime = read("/proc/uptime")?;
    let now: f64 = uptime
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .context("/proc/uptime is not a number")?;
    Ok(Duration::from_secs_f64(now).saturating_sub(started))
}

/// Processor time that the whole machine has used, in every mode but idle.
pub(crate) fn machine_time() -> Result<Duration> {
    let text = read("/proc/stat")?;
    let line = text.lines().next().context("/proc/stat is empty")?;
    let fields: Vec<u64> =
        line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; the rest is counted in user.
    let busy = |(at, _): &(usize, &u64)| !matches!(at, 3 | 4) && *at < 8;
    Ok(ticks(fields.iter().enumerate().filter(busy).map(|(_, count)| count).sum()))
}

/// A field of `/proc/PID/stat` by its number in proc(5). The second is the program's name in
/// brackets, which may hold anything.
fn stat_field(text: &str, number: usize) -> Result<u64> {
    text.rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(number.checked_sub(3)?))
        .and_then(|field| field.parse().ok())
        .with_context(|| format!("/proc names no field {number}"))
}

fn ticks(count: u64) -> Duration {
    TICK * u32::try_from(count).unwrap_or(u32::MAX)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let text = "1 (a ) b) S 4 5 6 7 8 9 10 11 12 13 140 150 16 17 18 19 20 21 220 23";
        assert_eq!(stat_field(text, 14).unwrap(), 140);
        assert_eq!(stat_field(text, 15).unwrap(), 150);
        assert_eq!(stat_field(text, 22).unwrap(), 220);
        assert!(stat_field(text, 60).is_err());
    }

    #[test]
    fn memory_by_where_it_comes_from() {
        let text = "55ad79f01000-7ffd1be6a000 ---p 00000000 00:00 0    [rollup]\n\
                    Rss:               18572 kB\nPss:               10702 kB\n\
                    Pss_Anon:           1600 kB\nAnonymous:          1628 kB\n";
        let wanted =
            Mapped { resident: 18572 * 1024, anonymous: 1628 * 1024, own_share: 1600 * 1024 };
        assert_eq!(mapped_of(text).unwrap(), wanted);
        assert!(mapped_of("Rss: 1 kB").is_err());
    }

    #[test]
    fn this_process_is_known() {
        let own = std::process::id();
        assert!(resident(own).unwrap() > 0);
        assert!(mapped(own).unwrap().anonymous > 0 && threads(own).unwrap() > 0);
        processor_time(own).unwrap();
        age(own).unwrap();
        assert!(machine_time().unwrap() >= processor_time(own).unwrap());
    }
}
