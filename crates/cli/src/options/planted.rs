//! Hidden options of `regatta serve` that plant a known delay or CPU cost in a server, to check
//! measurements against the truth.

use crate::options::values::{duration, limit};
use anyhow::bail;
use regatta_serve::{Delay, Host, Model, Service, serve_delayed, serve_handicapped};
use std::time::Duration;

/// The options.
#[derive(Debug, clap::Args)]
#[group(multiple = false, conflicts_with = "by_hand")]
pub struct Planted {
    /// CPU time to burn before each call, on average, e.g. 150ns; for double on epoll
    #[arg(long, hide = true, value_parser = limit, value_name = "TIME")]
    burn: Option<Duration>,
    /// Answer after a known delay: fixed:2ms, bimodal:1ms,20ms,0.05 (5% of the requests after
    /// 20 ms) or stall:100ms/1s (no replies in the first 100 ms of every second); for double
    #[arg(long, hide = true, value_parser = delay, value_name = "DELAY")]
    delay: Option<Delay>,
}

impl Planted {
    /// Serves with the planted delay or cost. Returns false if none was requested.
    pub fn serve(&self, service: Service, model: Model, host: &Host) -> anyhow::Result<bool> {
        if self.burn.is_none() && self.delay.is_none() {
            return Ok(false);
        }
        if (service, model) != (Service::Double, Model::Epoll) {
            bail!("--burn and --delay apply only to `serve double --model epoll`");
        }
        if let Some(cost) = self.burn {
            serve_handicapped(cost, host)?;
        }
        if let Some(delay) = self.delay {
            serve_delayed(delay, host)?;
        }
        Ok(true)
    }
}

fn delay(text: &str) -> Result<Delay, String> {
    let wanted = "expected fixed:2ms, bimodal:1ms,20ms,0.05 or stall:100ms/1s";
    let (kind, values) = text.split_once(':').ok_or(wanted)?;
    let values: Vec<&str> = values.split([',', '/']).collect();
    Ok(match (kind, &values[..]) {
        ("fixed", [delay]) => Delay::Fixed(duration(delay)?),
        ("bimodal", [usual, rare, share]) => {
            let share = share.parse().ok().filter(|share| (0.0..=1.0).contains(share));
            let share = share.ok_or("expected a share from 0 to 1")?;
            Delay::Bimodal { usual: duration(usual)?, rare: duration(rare)?, share }
        }
        ("stall", [length, every]) => {
            let (length, every) = (duration(length)?, duration(every)?);
            if length >= every {
                return Err("expected a stall shorter than its period".into());
            }
            Delay::Stall { length, every }
        }
        _ => return Err(wanted.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn parses_delays() {
        assert_eq!(delay("fixed:2ms"), Ok(Delay::Fixed(ms(2))));
        let bimodal = Delay::Bimodal { usual: ms(1), rare: ms(20), share: 0.05 };
        assert_eq!(delay("bimodal:1ms,20ms,0.05"), Ok(bimodal));
        let stall = Delay::Stall { length: ms(100), every: ms(1_000) };
        assert_eq!(delay("stall:100ms/1s"), Ok(stall));
        for (text, expected) in [
            ("2ms", "fixed:2ms"),
            ("fixed:2", "unit"),
            ("fixed:1ms,2ms", "fixed:2ms"),
            ("bimodal:1ms,2ms,5", "from 0 to 1"),
            ("stall:1s/1s", "shorter than its period"),
        ] {
            let error = delay(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
