//! What an interface of this machine carries.

use super::route::interface_to;
use regatta_record::Carried;
use std::{fs, fs::File, net::IpAddr, os::unix::fs::FileExt, path::PathBuf, time::Instant};

/// Bytes of a frame that interfaces do not count: preamble, check sum, and the gap to the next one (IEEE 802.3). Drivers
/// that count several frames as one make the sum too small.
const FRAME_BYTES: u64 = 24;

/// Measures what an interface carries between two calls.
#[derive(Debug)]
pub struct LinkMeter {
    interface: String,
    line_bits_per_s: Option<u64>,
    /// Bytes and frames that came, and that were sent.
    counters: [File; 4],
    last: Option<(Instant, [u64; 4])>,
}

impl LinkMeter {
    /// Opens the interface that reaches `address`, or that has it. `None`: it has none, or the kernel does not report
    /// on it.
    pub fn of(address: IpAddr) -> Option<LinkMeter> {
        let interface = interface_to(address)?;
        let folder = PathBuf::from("/sys/class/net").join(&interface);
        let open = |name: &str| File::open(folder.join("statistics").join(name)).ok();
        let counters =
            [open("rx_bytes")?, open("rx_packets")?, open("tx_bytes")?, open("tx_packets")?];
        // Without a cable it is an error or -1 (sysfs-class-net). That of an interface without a device is invented: veth
        // has 10 Gbit/s and carries more.
        let has_device = folder.join("device").exists();
        let speed = fs::read_to_string(folder.join("speed")).ok().filter(|_| has_device);
        let mbits = speed.and_then(|text| text.trim().parse::<u64>().ok());
        let line_bits_per_s = mbits.filter(|mbits| *mbits > 0).map(|mbits| mbits * 1_000_000);
        Some(LinkMeter { interface, line_bits_per_s, counters, last: None })
    }

    /// Returns what was carried since the last call; `None` at the first call, or if it cannot be read. It takes
    /// less than 0.1 ms.
    pub fn lap(&mut self) -> Option<Carried> {
        let now = self.read();
        let last = std::mem::replace(&mut self.last, now);
        let ((now, counters), (then, before)) = (now?, last?);
        let [received, frames, sent, frames_sent] =
            std::array::from_fn(|nth| counters[nth].saturating_sub(before[nth]));
        Some(Carried {
            interface: self.interface.clone(),
            line_bits_per_s: self.line_bits_per_s,
            ns: (now - then).as_nanos() as u64,
            received_bytes: received + FRAME_BYTES * frames,
            sent_bytes: sent + FRAME_BYTES * frames_sent,
        })
    }

    fn read(&self) -> Option<(Instant, [u64; 4])> {
        let at = Instant::now();
        let mut buffer = [0; 32];
        let mut all = [0; 4];
        for (counter, value) in self.counters.iter().zip(&mut all) {
            let n = counter.read_at(&mut buffer, 0).ok()?;
            *value = std::str::from_utf8(&buffer[..n]).ok()?.trim().parse().ok()?;
        }
        Some((at, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_link() {
        assert!(LinkMeter::of(IpAddr::from([127, 0, 0, 1])).is_none());
    }

    #[test]
    fn an_interface_of_this_machine_is_read() {
        // The address of the default route, if there is one (RFC 5737: belongs to no machine).
        let Some(mut link) = LinkMeter::of(IpAddr::from([192, 0, 2, 1])) else { return };
        assert_eq!(link.lap(), None);
        let carried = link.lap().unwrap();
        assert!(!carried.interface.is_empty() && carried.ns > 0, "{carried:?}");
        assert!(carried.received_bytes < 1 << 40, "{carried:?}");
    }
}
