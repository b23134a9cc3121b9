//! The CPU time of the roles of a contender in its slices.

use regatta_record::RoleUsage;

/// Replaces the CPU time of each role by that in its counted slices, in nanoseconds and in the order in which
/// the roles were started. In the record the server, which is started last, is first.
pub(super) fn of_slices(mut roles: Vec<RoleUsage>, in_slices_ns: &[u64]) -> Vec<RoleUsage> {
    for (role, ns) in roles.iter_mut().zip(in_slices_ns.iter().rev()) {
        if let Some(used) = &mut role.used {
            used.cpu_ns = *ns;
        }
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Server;

    #[test]
    fn the_server_is_started_last_and_is_the_first_in_the_record() {
        let used = Server { cpu_ns: 1, ..Server::default() };
        let role = |name: &str, used| RoleUsage { name: name.into(), count: 1, cpus: vec![], used };
        let roles = [
            role(RoleUsage::SERVER, Some(used.clone())),
            role("unread", None),
            role("store", Some(used)),
        ];
        let cpu_ns: Vec<Option<u64>> = of_slices(roles.into(), &[10, 20, 30])
            .into_iter()
            .map(|role| role.used.map(|used| used.cpu_ns))
            .collect();
        assert_eq!(cpu_ns, [Some(30), None, Some(10)]);
    }
}
