//! Starts a contender in the same way as a race.

use regatta_host::{Roles, StopReport, SupervisorError};
use regatta_race::{Contender, RoleCpus, Values};
use regatta_script::hash_file;
use std::{
    fmt::Display,
    fs::{self, Permissions},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Maximum time until a contender is ready.
const READY: Duration = Duration::from_secs(60);
/// Maximum time to stop a contender.
const GRACE: Duration = Duration::from_secs(10);

/// A running contender. Its processes are stopped when it is dropped.
pub struct Running {
    pub roles: Roles,
    pub addr: SocketAddr,
    /// The file that it reads, if its workload is `hash`.
    pub file: PathBuf,
    _run: TempDir,
}

impl Running {
    /// Starts a contender with a workload, for `cores` CPUs. Errors are messages for a reader.
    pub fn start(
        contender: &Contender,
        workload: &str,
        cores: usize,
        cpus: &RoleCpus<'_>,
    ) -> Result<Running, String> {
        let binary = Path::new(env!("CARGO_BIN_EXE_regatta"));
        let run = tempfile::tempdir().map_err(said)?;
        // As in a race: some servers switch to another user, who must be able to read the folder.
        fs::set_permissions(run.path(), Permissions::from_mode(0o755)).map_err(said)?;
        let backends = contender.backend_ports().map_err(said)?;
        let values = Values {
            host: Ipv4Addr::LOCALHOST.into(),
            port: regatta_testkit::port::free(),
            workload,
            cores,
            churn: false,
            request_bytes: None,
            dir: &contender.dir,
            run: run.path(),
            home: run.path(),
            regatta: binary,
            instance: None,
            backends: &backends,
        };
        let file = PathBuf::from(values.fill("{file}").map_err(said)?);
        hash_file::write(&file).map_err(said)?;
        let name = &contender.manifest.name;
        let launches = contender.launches(name, &values, cpus).map_err(said)?;
        let roles = Roles::start(binary, &launches, READY, GRACE, &|| true).map_err(said)?;
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, values.port));
        Ok(Running { roles, addr, file, _run: run })
    }

    /// The process ID of its server's first process.
    pub fn server_pid(&self) -> u32 {
        let server = self.roles.all().last().expect("the server comes last");
        server.pids().next().expect("it has a process")
    }

    /// Stops it in the same way as a race. The error describes a fault during the stop.
    pub fn stop(self) -> Result<(), String> {
        let stopped = self.roles.stop(GRACE).into_iter().collect::<Result<Vec<StopReport>, _>>();
        let stopped = stopped.map_err(|error: SupervisorError| said(error))?;
        stopped.iter().find_map(StopReport::fault).map_or(Ok(()), Err)
    }
}

fn said(error: impl Display) -> String {
    error.to_string()
}
