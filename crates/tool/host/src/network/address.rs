//! The interface that has an address of this machine, by rtnetlink(7).

use super::netlink::{dump, u32_at};
use std::{io, net::Ipv4Addr};

// linux/rtnetlink.h, linux/if_addr.h
const RTM_GETADDR: u16 = 22;
const AF_INET: u8 = 2;
/// Length of an `ifaddrmsg`, after which the attributes are, each with a header.
const ADDRESS_BYTES: usize = 8;
const ATTRIBUTE_BYTES: usize = 4;
const IFA_LOCAL: u16 = 2;
const IFA_LABEL: u16 = 3;

/// Returns the name of the interface that has the address; `None` if no interface has it, or the kernel does not list
/// them.
pub fn interface_with(address: Ipv4Addr) -> Option<String> {
    let mut found = None;
    let body = [AF_INET, 0, 0, 0, 0, 0, 0, 0];
    dump(None, RTM_GETADDR, &body, |message| {
        let of = entry(message)?;
        if let Some((local, name)) = of
            && local == address
            && found.is_none()
        {
            found = Some(name);
        }
        Ok(())
    })
    .ok()?;
    found
}

/// The address of an entry, and the interface that has it.
fn entry(message: &[u8]) -> io::Result<Option<(Ipv4Addr, String)>> {
    let (mut local, mut name) = (None, None);
    let mut attributes = message.get(ADDRESS_BYTES..).unwrap_or_default();
    while !attributes.is_empty() {
        let header = u32_at(attributes, 0)?;
        // The length is first, in the byte order of this machine.
        let [length, kind] = [0, 2].map(|at| {
            let bytes = header.to_ne_bytes();
            u16::from_ne_bytes([bytes[at], bytes[at + 1]])
        });
        let length = usize::from(length).max(ATTRIBUTE_BYTES);
        let value = attributes.get(ATTRIBUTE_BYTES..length).unwrap_or_default();
        match kind {
            IFA_LOCAL => local = value.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes)),
            // An alias of an interface is its name, a colon and more.
            IFA_LABEL => {
                let text = String::from_utf8_lossy(value);
                let label = text.trim_end_matches('\0').split(':').next();
                name = label.map(str::to_owned);
            }
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(local.zip(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = (ATTRIBUTE_BYTES + value.len()) as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn an_address_of_one_host_has_its_interface() {
        let message = [
            vec![AF_INET, 32, 0, 0, 7, 0, 0, 0],
            attribute(1, &[10, 0, 0, 9]),
            attribute(IFA_LOCAL, &[10, 0, 0, 5]),
            attribute(IFA_LABEL, b"eth1:2\0"),
        ]
        .concat();
        assert_eq!(entry(&message).unwrap(), Some(([10, 0, 0, 5].into(), "eth1".to_owned())));
        assert_eq!(entry(&[AF_INET, 32, 0, 0, 7, 0, 0, 0]).unwrap(), None);
        assert_eq!(entry(&[]).unwrap(), None);
        assert!(entry(&[0; 10]).is_err(), "an attribute without an end");
    }

    #[test]
    fn loopback_has_its_address_and_no_interface_has_one_of_documentation() {
        assert_eq!(interface_with([127, 0, 0, 1].into()).as_deref(), Some("lo"));
        assert_eq!(interface_with([192, 0, 2, 1].into()), None);
    }
}
