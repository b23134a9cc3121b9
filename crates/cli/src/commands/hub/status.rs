//! `regatta hub status`: the state of a running hub, from its pages for operators.

use crate::{exit::Outcome, operator_page::fetch, output};
use anyhow::{bail, ensure};
use regatta_report::grouped;

/// Print the state of a running hub, from the pages of its --metrics: whether it is ready, its members, rooms,
/// messages, and whom it refused or disconnected.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  regatta hub status 127.0.0.1:9090

Exit status: 0 if the hub is ready, 1 if it is stopping or starting, 2 if it does not answer.")]
pub struct StatusArgs {
    /// HOST:PORT of the hub's --metrics
    #[arg(value_name = "ADDR")]
    addr: String,
}

/// Prints the state of a hub.
pub fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let (ready, text) = fetch(&args.addr, "/ready")?;
    let (status, metrics) = fetch(&args.addr, "/metrics")?;
    let is_hub = status == 200 && value(&metrics, "members").is_some();
    ensure!(is_hub, "{} does not have the metrics of a hub; expected its --metrics", args.addr);
    let outcome = match ready {
        200 => Outcome::Success,
        503 => Outcome::Failure,
        other => bail!("/ready of {} has the unexpected status {other}", args.addr),
    };
    output::print(&shown(text.trim(), &metrics))?;
    Ok(outcome)
}

/// Returns a value of the metrics, by its name behind the prefix, and its labels.
fn value(metrics: &str, name: &str) -> Option<u64> {
    let name = format!("regatta_hub_{name} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
}

/// The text for people. `state`: what `/ready` says.
fn shown(state: &str, metrics: &str) -> String {
    // A hub of another version may lack some.
    let number = |name: &str| value(metrics, name).map_or("?".into(), grouped);
    let of = |name: &str, label: &str, of: &str| number(&format!("{name}{{{label}=\"{of}\"}}"));
    let mib = |name: &str| value(metrics, name).map_or("?".into(), |bytes| grouped(bytes >> 20));
    // The processes of `cluster` do not know these.
    let rooms = value(metrics, "rooms").map(|rooms| format!(" in {} rooms", grouped(rooms)));
    let held = value(metrics, "memory_bytes").map(|_| format!("{} of ", mib("memory_bytes")));
    let (rooms, held) = (rooms.unwrap_or_default(), held.unwrap_or_default());
    let broker = value(metrics, "broker_up").map(|is_up| {
        format!(
            "broker     {}, {} messages published, {} not, {} unknown, lost {} times\n",
            if is_up == 1 { "connected" } else { "away" },
            of("broker_messages_total", "outcome", "published"),
            of("broker_messages_total", "outcome", "not_published"),
            of("broker_messages_total", "outcome", "unknown"),
            number("broker_lost_total"),
        )
    });
    let text = format!(
        "state      {state}\n\
         members    {}{rooms}, {} since the start\n\
         messages   {} broadcasts, {} publications, {} echoes, {} malformed\n\
         deliveries {}\n\
         refused    {} members at a limit, {} tokens, {} without a token,\n\
         \x20          {} of other rooms, {} origins, {} API keys\n\
         slow       {} disconnected, {} broadcasts skipped, {} conflated\n\
         memory     {held}{} MiB, {} members disconnected for it\n",
        number("members"),
        number("members_total"),
        of("messages_total", "type", "broadcast"),
        of("messages_total", "type", "publication"),
        of("messages_total", "type", "echo"),
        of("messages_total", "type", "malformed"),
        number("deliveries_total"),
        number("refused_total"),
        of("denied_total", "because", "token_not_valid"),
        of("denied_total", "because", "no_token"),
        of("denied_total", "because", "other_room"),
        of("denied_total", "because", "origin"),
        of("denied_total", "because", "api_key"),
        of("slow_total", "policy", "close"),
        of("slow_total", "policy", "skip"),
        of("slow_total", "policy", "conflate"),
        mib("memory_limit_bytes"),
        number("memory_closed_total"),
    );
    text + &broker.unwrap_or_default() + &master(metrics).unwrap_or_default()
}

/// The line about those who give the broker as a master, if somebody does: Sentinels, or nodes of a cluster.
fn master(metrics: &str) -> Option<String> {
    let age = grouped(value(metrics, "broker_master_age_seconds")?);
    let up = metrics.lines().filter(|line| line.starts_with("regatta_hub_broker_sentinel_up{"));
    let (all, answer) = (up.clone().count(), up.filter(|line| line.ends_with(" 1")).count());
    let switches = value(metrics, "broker_master_switches_total").map_or("?".into(), grouped);
    let since = format!("{age} s ago, and was another one {switches} times\n");
    Some(match all {
        0 => format!("cluster    the master was confirmed {since}"),
        _ => format!("sentinels  {answer} of {all} answer, the master was given {since}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_shown_with_the_numbers_that_are_there() {
        let metrics = "# TYPE regatta_hub_members gauge\nregatta_hub_members 1234\n\
            regatta_hub_rooms 5\nregatta_hub_members_total 2000\n\
            regatta_hub_messages_total{type=\"broadcast\"} 7\nregatta_hub_slow_total{policy=\"skip\"} 3\n\
            regatta_hub_memory_bytes 3145728\nregatta_hub_memory_limit_bytes 268435456\n";
        let text = shown("ready", metrics);
        for line in [
            "state      ready",
            "members    1,234 in 5 rooms, 2,000 since the start",
            "messages   7 broadcasts, ? publications, ? echoes, ? malformed",
            "slow       ? disconnected, 3 broadcasts skipped, ? conflated",
            "memory     3 of 256 MiB, ? members disconnected for it",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
        let joined = shown("ready", "regatta_hub_broker_up 1\nregatta_hub_broker_lost_total 2\n");
        let line = "broker     connected, ? messages published, ? not, ? unknown, lost 2 times\n";
        assert!(joined.ends_with(line), "{joined}");
        let managed = "regatta_hub_broker_up 1\nregatta_hub_broker_sentinel_up{sentinel=\"a:1\"} 1\n\
            regatta_hub_broker_sentinel_up{sentinel=\"b:1\"} 0\nregatta_hub_broker_master_age_seconds 7\n\
            regatta_hub_broker_master_switches_total 2\n";
        let line =
            "sentinels  1 of 2 answer, the master was given 7 s ago, and was another one 2 times\n";
        assert!(shown("ready", managed).ends_with(line));
        let in_cluster = "regatta_hub_broker_up 1\nregatta_hub_broker_master_age_seconds 7\n\
            regatta_hub_broker_master_switches_total 2\n";
        let line = "cluster    the master was confirmed 7 s ago, and was another one 2 times\n";
        assert!(shown("ready", in_cluster).ends_with(line));
        let apart =
            shown("stopping: x", "regatta_hub_members 1\nregatta_hub_memory_limit_bytes 0\n");
        assert!(apart.contains("members    1, ? since"), "{apart}");
        assert!(apart.contains("memory     0 MiB"), "{apart}");
    }
}
