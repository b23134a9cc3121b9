//! What the network between load and contender carried.

use serde::{Deserialize, Serialize};

/// What both ends of the network saw in some slices. Absent: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// In records of earlier versions, the length of the slices, nanoseconds, for both ends. Otherwise absent.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub ns: u64,
    /// The load's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Carried>,
    /// The contender's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Carried>,
}

/// What one end saw: everything on its interface, also of other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The interface.
    pub interface: String,
    /// Its speed, bits per second. Absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_bits_per_s: Option<u64>,
    /// How long the bytes took, nanoseconds: from when the contender was thawed until it was frozen, in the slices whose
    /// bytes are known. Absent: [`NetworkUse::ns`].
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub ns: u64,
    /// Bytes that came, with those that a frame takes on the line beside its contents.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
}

impl NetworkUse {
    /// Adds what was seen later.
    pub fn add(&mut self, other: &NetworkUse) {
        add(&mut self.load, other.load.as_ref(), other.ns);
        add(&mut self.server, other.server.as_ref(), other.ns);
    }
}

fn add(sum: &mut Option<Carried>, other: Option<&Carried>, slices_ns: u64) {
    let Some(other) = other else { return };
    let ns = if other.ns == 0 { slices_ns } else { other.ns };
    match sum {
        None => *sum = Some(Carried { ns, ..other.clone() }),
        Some(sum) => {
            sum.ns += ns;
            sum.received_bytes += other.received_bytes;
            sum.sent_bytes += other.sent_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_without_bytes_has_no_time() {
        let carried = |ns| Some(Carried { ns, sent_bytes: 7, ..Carried::default() });
        let mut all = NetworkUse::default();
        all.add(&NetworkUse { ns: 0, load: carried(100), server: carried(110) });
        all.add(&NetworkUse { ns: 0, load: None, server: carried(110) });
        assert_eq!(all.load.map(|load| (load.ns, load.sent_bytes)), Some((100, 7)));
        assert_eq!(all.server.map(|server| (server.ns, server.sent_bytes)), Some((220, 14)));
    }

    #[test]
    fn a_record_of_an_earlier_version_has_one_time_for_both_ends() {
        let text = r#"{"ns":50,"server":{"interface":"eth0","line_bits_per_s":1000,"received_bytes":1,
                       "sent_bytes":2,"segments":900,"resent":7}}"#;
        let mut all = NetworkUse::default();
        all.add(&serde_json::from_str(text).unwrap());
        let server = all.server.unwrap();
        assert_eq!((server.ns, server.sent_bytes), (50, 2));
    }
}
