//! What an interface of this machine carries, and what TCP sends again.

use super::route::interface_to;
use regatta_record::Carried;
use std::{fs, fs::File, net::IpAddr, os::unix::fs::FileExt, path::PathBuf};

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
    /// Counters of protocols (proc_net(5)).
    tcp: File,
    last: Option<[u64; 6]>,
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
        let tcp = File::open("/proc/net/snmp").ok()?;
        Some(LinkMeter { interface, line_bits_per_s, counters, tcp, last: None })
    }

    /// Returns what was carried since the last call; `None` at the first call, or if it cannot be read. It takes
    /// 0.1 ms.
    pub fn lap(&mut self) -> Option<Carried> {
        let now = self.read();
        let last = std::mem::replace(&mut self.last, now);
        let (now, last) = (now?, last?);
        let [received, frames, sent, frames_sent, segments, resent] =
            std::array::from_fn(|nth| now[nth].saturating_sub(last[nth]));
        Some(Carried {
            interface: self.interface.clone(),
            line_bits_per_s: self.line_bits_per_s,
            received_bytes: received + FRAME_BYTES * frames,
            sent_bytes: sent + FRAME_BYTES * frames_sent,
            segments,
            resent,
        })
    }

    fn read(&self) -> Option<[u64; 6]> {
        let mut buffer = [0; 4096];
        let mut all = [0; 6];
        for (counter, value) in self.counters.iter().zip(&mut all) {
            let n = counter.read_at(&mut buffer[..32], 0).ok()?;
            *value = std::str::from_utf8(&buffer[..n]).ok()?.trim().parse().ok()?;
        }
        let n = self.tcp.read_at(&mut buffer, 0).ok()?;
        [all[4], all[5]] = segments(std::str::from_utf8(&buffer[..n]).ok()?)?;
        Some(all)
    }
}

/// The segments that were sent for the first time, and again: `OutSegs` has none of the latter (RFC 1213).
fn segments(snmp: &str) -> Option<[u64; 2]> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let names: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let values: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let of = |name: &str| {
        let at = names.iter().position(|one| *one == name)?;
        values.get(at)?.parse().ok()
    };
    Some([of("OutSegs")?, of("RetransSegs")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_their_names() {
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm MaxConn OutSegs RetransSegs InErrs\n\
                    Tcp: 1 -1 900 7 0\nUdp: OutDatagrams\nUdp: 5\n";
        assert_eq!(segments(snmp), Some([900, 7]));
        assert_eq!(segments("Tcp: OutSegs\nTcp: 4\n"), None);
        assert_eq!(segments(""), None);
    }

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
        assert!(!carried.interface.is_empty() && carried.received_bytes < 1 << 40, "{carried:?}");
    }
}
