//! Which boot of which kernel this is: equal on all machines that are one, whatever their names and networks.

use std::fs;

/// The boot id of the kernel (random(4)); `None` if it cannot be read. Containers and network namespaces share it.
pub(crate) fn boot() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(boot.trim().to_owned()).filter(|boot| !boot.is_empty())
}

/// Whether an agent that reported this boot runs on this machine. False if either boot is not known.
pub(crate) fn is_here(there: Option<&str>) -> bool {
    there.is_some() && there == boot().as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_boot() {
        let own = boot().expect("Linux has a boot id");
        assert!(is_here(Some(&own)));
        assert!(!is_here(Some("another")) && !is_here(None));
    }
}
